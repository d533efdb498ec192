#include "warpsmith/measure/gpu_workers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <thread>

#include "extension/measurer.h"
#include "gpu_place.h"
#include "timing/judge.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/json.h"
#include "warpsmith/base/log.h"
#include "warpsmith/device/gpu.h"
#include "warpsmith/measure/gpu.h"
#include "warpsmith/measure/reference.h"
#include "warpsmith/task/task_source.h"

namespace warpsmith::measure {

namespace {

// Beyond all that a measurement may take by its own limits: right answers, checks, timings, a stalled host.
constexpr double kPatience = 300;      // seconds, with a budget a pair, ten calls and a first run on top
constexpr double kMostFirstRun = 300;  // of a Python module that compiles: its start, two times its limit

// A message: its length in 8 bytes, then that much JSON. False where the other side is gone.
bool send(int fd, const std::string& text) {
  const std::uint64_t size = text.size();
  std::string bytes(reinterpret_cast<const char*>(&size), sizeof size);
  bytes += text;
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t n = ::send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<std::size_t>(n);
  }
  return true;
}

enum class Received { kAll, kGone, kLate };

Received receive_bytes(int fd, char* to, std::size_t size, std::chrono::steady_clock::time_point until) {
  for (std::size_t at = 0; at < size;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Received::kLate;
    pollfd poll{fd, POLLIN, 0};
    if (::poll(&poll, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1'000'000))) <= 0) continue;
    const ssize_t n = ::recv(fd, to + at, size - at, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Received::kGone;
    at += static_cast<std::size_t>(n);
  }
  return Received::kAll;
}

Received receive(int fd, std::string* text, double timeout_s) {
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::milliseconds(static_cast<std::int64_t>(timeout_s * 1e3));
  std::uint64_t size = 0;
  if (const Received r = receive_bytes(fd, reinterpret_cast<char*>(&size), sizeof size, until);
      r != Received::kAll)
    return r;
  text->resize(size);
  return receive_bytes(fd, text->data(), size, until);
}

// What a kernel prints comes out of the process that waits for it: nobody reads it.
void silence_stdout() {
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) return;
  ::dup2(nowhere, STDOUT_FILENO);
  ::close(nowhere);
}

// The worker's side: until the parent is gone.
class Worker {
 public:
  Worker(int fd, const Settings& settings, const std::filesystem::path& datasets,
         const std::vector<std::byte>& harness)
      : fd_(fd), tasks_(datasets, settings.shapes_of_cpu ? "cpu" : settings.device_kind) {
    try {
      measurer_.emplace(settings, harness);
    } catch (const Error& e) {
      broken_ = error_json(e);
      (*broken_)["lost"] = true;  // another process may find a GPU that works
    }
  }

  void serve() {
    constexpr double kForEver = 1e8;
    std::string request;
    while (receive(fd_, &request, kForEver) == Received::kAll) {
      const Json answer = broken_ ? *broken_ : answer_to(parse_json(request, "request of warpsmith-measure"));
      if (!send(fd_, answer.dump(-1, ' ', false, Json::error_handler_t::replace)) ||
          answer.value("lost", false))
        return;
    }
  }

 private:
  static Json error_json(const Error& e) {
    return {{"error", e.what()},
            {"exit_code", e.exit_code()},
            {"input", dynamic_cast<const InvalidInput*>(&e) != nullptr}};
  }

  Json answer_to(const Json& request) {
    try {
      if (request.contains("prepare")) {
        measurer_->prepare();
        return Json::object({{"lost", measurer_->lost()}});
      }
      const Candidate candidate = candidate_from_json(request.at("candidate"));
      std::optional<Measurement> checked;
      if (request.contains("checked")) checked = measurement_from_json(request.at("checked"));
      measurer_->know_best(candidate.task, request.at("best").get<double>());
      const Measured measured =
          measurer_->measure(tasks_.of(candidate.task), candidate, request.at("binary").get<std::string>(),
                             request.at("attempt").get<int>(), checked ? &*checked : nullptr);
      return {{"measurement", to_json(measured.measurement)},
              {"samples", measured.samples},
              {"again", measured.again},
              {"crowded", measured.measurement.verdict == Verdict::kOutOfMemory && !measurer_->lost() &&
                              measurer_->crowded()},
              {"lost", measurer_->lost()}};
    } catch (const Error& e) {
      Json answer = error_json(e);
      answer["lost"] = device::gpu_is_lost();
      return answer;
    } catch (const std::exception& e) {
      return {{"error", e.what()}, {"exit_code", static_cast<int>(kExitEnvironment)}, {"lost", true}};
    }
  }

  int fd_;
  task::TaskSource tasks_;
  std::optional<GpuMeasurer> measurer_;
  std::optional<Json> broken_;
};

}  // namespace

struct GpuWorkers::State {
  struct Process {
    pid_t pid = -1;
    int fd = -1;
  };
  Settings settings;
  std::filesystem::path datasets;
  std::vector<std::byte> harness;
  // What loops or crashes does so in a check, and takes that process along; those that time start slowly, for
  // they look for a quick context (context.h). A second opinion is the other one's.
  std::optional<Process> checker, timers[2];
  bool prepared = false;
  int lost = 0;

  std::optional<Process>& timer(int attempt) { return timers[attempt % 2]; }

  Process start(bool timing) {
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
      throw system_error("socketpair", errno);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) throw system_error("cannot fork a process for the GPU", errno);
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(0);
      ::close(fds[0]);
      silence_stdout();
      settings.timing = timing;
      int code = 0;
      try {
        Worker(fds[1], settings, datasets, harness).serve();
      } catch (const std::exception& e) {
        log_error(std::string("the process on the GPU: ") + e.what());
        code = kExitFailed;
      }
      ::_exit(code);  // no destructors: of a context that is lost they would only complain
    }
    ::close(fds[1]);
    return {pid, fds[0]};
  }

  static std::string end(Process& process) {
    ::close(process.fd);
    ::kill(process.pid, SIGKILL);
    int status = 0;
    while (::waitpid(process.pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) return fmt::format("ended by signal {}", WTERMSIG(status));
    return fmt::format("exit code {}", WEXITSTATUS(status));
  }

  // The next one starts with the next candidate, when nothing else is on the GPU: beside a start, rounds
  // scatter ten times as much.
  static void drop(std::optional<Process>& process) {
    if (process) end(*process);
    process.reset();
  }

  // False where the process is gone or does not answer: `m` says so.
  bool ask(std::optional<Process>& process, const Json& request, std::optional<Json>* answer,
           Measurement* m) {
    if (!process) process = start(&process != &checker);
    std::string text;
    Received received = Received::kGone;
    if (send(process->fd, request.dump())) received = receive(process->fd, &text, patience());
    if (received == Received::kAll) {
      *answer = parse_json(text, "answer of the process on the GPU");
      return true;
    }
    m->verdict = received == Received::kLate ? Verdict::kTimeout : Verdict::kCrash;
    const std::string how = end(*process);
    m->detail = received == Received::kLate ? "its measurement did not end"
                                            : "the process that measured it was gone: " + how;
    process.reset();
    ++lost;
    return false;
  }

  // A process that ends by a signal may have done so of itself: no host code of a candidate runs in it. So
  // the candidate is measured once more, and only the second time it is to blame.
  Measured once(std::optional<Process>& process, const Json& request, Measured blank,
                bool* crowded = nullptr) {
    std::optional<Json> answer;
    Measurement& m = blank.measurement;
    double lost_s = 0;  // of processes that said nothing: they had the GPU for so long at most
    for (int tries = 0; tries < 2 && !answer; ++tries) {
      const double begin = seconds_now();
      if (ask(process, request, &answer, &m)) continue;
      lost_s += seconds_now() - begin;
      m.gpu_held_s = lost_s;
      log_warning(m.candidate + " of " + m.task + ": " + m.detail);
      if (m.verdict == Verdict::kTimeout) break;
    }
    if (!answer) return blank;
    if (answer->value("lost", false)) {
      drop(process);
      ++lost;
    }
    throw_error_of(*answer);
    if (crowded != nullptr) *crowded = answer->value("crowded", false);
    m = measurement_from_json(answer->at("measurement"));
    if (lost_s > 0) m.gpu_held_s = m.gpu_held_s.value_or(0) + lost_s;
    blank.samples = answer->at("samples").get<std::vector<std::int64_t>>();
    blank.again = answer->value("again", "");
    return blank;
  }

  // Before the first candidate, so that all have the same to say of the device.
  void prepare() {
    if (prepared) return;
    std::optional<Json> answer;
    Measurement nobody;
    if (!ask(timers[0], Json::object({{"prepare", true}}), &answer, &nobody)) throw Error(nobody.detail);
    if (answer->value("lost", false)) drop(timers[0]);
    throw_error_of(*answer);
    prepared = true;
  }

  // The other processes keep memory of the GPU, and its context where it has but one: where a process lacks
  // something it gets the GPU to itself.
  Measured measured(std::optional<Process>& process, const Json& request, const Measured& blank) {
    const auto others = [&] {
      std::vector<std::optional<Process>*> all;
      for (std::optional<Process>* other : {&checker, &timers[0], &timers[1]})
        if (other != &process && *other) all.push_back(other);
      return all;
    };
    constexpr int kTriesOfShared = 5;
    constexpr double kPauseS = 4;  // longer each time: until another shard is done with its task
    for (int tries = 1;; ++tries) {
      const bool alone = others().empty();
      const bool again = !alone || (settings.shares_gpu && tries < kTriesOfShared);
      try {
        bool crowded = false;
        Measured out = once(process, request, blank, &crowded);
        if (!crowded) return out;
        if (!again) {
          if (settings.shares_gpu) {  // it might fit where the GPU is its own
            out.measurement.verdict = Verdict::kNotMeasured;
            out.measurement.detail =
                "it does not fit on this GPU beside other shards: " + out.measurement.detail;
          }
          return out;
        }
      } catch (const InvalidInput&) {
        throw;
      } catch (const Error& e) {
        drop(process);  // whoever comes next gets another
        if (e.exit_code() == kExitWrongDevice || !again || (alone && !lacks_gpu_memory(e.what()))) throw;
        log_warning(
            std::string(e.what()) +
            (alone ? "; once more, in a while" : "; once more, with nothing else of this shard on the GPU"));
      }
      for (std::optional<Process>* other : others()) drop(*other);
      drop(process);
      if (alone) std::this_thread::sleep_for(std::chrono::duration<double>(kPauseS * tries));
    }
  }

  static void throw_error_of(const Json& answer) {
    if (answer.contains("error")) {
      const int code = answer.value("exit_code", static_cast<int>(kExitEnvironment));
      const std::string words = answer.at("error").get<std::string>();
      if (answer.value("input", false)) throw InvalidInput({{"", 0, 0, words, ""}});
      throw Error(words, code);
    }
  }

  double patience() const {
    return kPatience + kMostFirstRun + kMostPairs * settings.budget_s + 10 * settings.call_timeout_s;
  }
};

GpuWorkers::GpuWorkers(Settings settings, std::filesystem::path datasets, std::vector<std::byte> harness)
    : state_(std::make_unique<State>()) {
  load_torch_cuda();
  state_->settings = std::move(settings);
  state_->datasets = std::move(datasets);
  state_->harness = std::move(harness);
}

GpuWorkers::~GpuWorkers() { refresh(); }

void GpuWorkers::refresh() {
  State::drop(state_->checker);
  for (std::optional<State::Process>& timer : state_->timers) State::drop(timer);
}

int GpuWorkers::lost() const { return state_->lost; }

Measured GpuWorkers::measure_once(const Candidate& candidate, const std::filesystem::path& binary,
                                  int attempt) {
  State& s = *state_;
  Json request = {{"candidate", to_json(candidate)},
                  {"binary", binary.string()},
                  {"attempt", attempt},
                  {"best", s.settings.best[candidate.task]}};
  Measured blank;
  blank.measurement.candidate = candidate.id;
  blank.measurement.task = candidate.task;
  blank.measurement.remeasured = attempt;
  if (s.settings.timing) s.prepare();
  // What has host code is checked and timed in a child of its own.
  if (s.settings.timing && candidate.tier != Tier::kPlan) return s.measured(s.timer(attempt), request, blank);
  const Measured checked = s.measured(s.checker, request, blank);
  if (!s.settings.timing || checked.measurement.verdict != Verdict::kOk) return checked;
  request["checked"] = to_json(checked.measurement);
  Measured timed = s.measured(s.timer(attempt), request, blank);
  add_costs(timed.measurement, checked.measurement);
  return timed;
}

// What is doubtful is measured again in another process, and then in a fresh one: nothing is left of the
// first that could repeat it.
Measured GpuWorkers::measure(const Candidate& candidate, const std::filesystem::path& binary) {
  constexpr int kMostTimes = 3;
  State& s = *state_;
  Measured out = measure_once(candidate, binary, 0);
  for (int attempt = 1; attempt < kMostTimes && !out.again.empty(); ++attempt) {
    if (attempt > 1) State::drop(s.timer(attempt));
    out = second_opinion(out, measure_once(candidate, binary, attempt));
  }
  out.again.clear();
  if (const Measurement& m = out.measurement; m.verdict == Verdict::kOk && m.rounds > 0) {
    double& best = s.settings.best[m.task];
    best = std::max(best, m.speedup);
  }
  return out;
}

}  // namespace warpsmith::measure
