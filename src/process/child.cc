#include "warpsmith/process/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/version.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#if BOOST_VERSION >= 108600
#include <boost/process/v1/args.hpp>
#include <boost/process/v1/child.hpp>
#include <boost/process/v1/env.hpp>
#include <boost/process/v1/exe.hpp>
#include <boost/process/v1/extend.hpp>
namespace bp = boost::process::v1;
#else
#include <boost/process/args.hpp>
#include <boost/process/child.hpp>
#include <boost/process/env.hpp>
#include <boost/process/exe.hpp>
#include <boost/process/extend.hpp>
namespace bp = boost::process;
#endif

#include "guard/tree.h"
#include "guard/written.h"
#include "sandbox.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"
#include "warpsmith/process/descriptors.h"

namespace warpsmith::process {

namespace {

using Clock = std::chrono::steady_clock;

// More than this over what is kept of one stream, and the child is ended.
constexpr std::uint64_t kFlood = 64ull << 20;

// What WrittenFiles::look() found, for people; empty where `reason` is something else.
std::string over_scratch(std::string_view reason, const Limits& limits) {
  if (reason == "file_bytes")
    return "it has written more than " + format_size(limits.scratch_bytes) + " of files";
  if (reason == "file_count")
    return "it has made more than " +
           std::to_string(limits.scratch_files > 0 ? limits.scratch_files : guard::kMostFiles) + " files";
  if (reason == "folder_depth")
    return "it has nested folders more than " + std::to_string(guard::kMostDepth) + " deep";
  if (reason == "closed_folder") return "it has made a folder that cannot be read";
  return "";
}

// Never 0, 1 or 2, which the child's standard streams take.
Fd above_standard(int fd, const char* what) {
  if (fd < 0) throw system_error(what, errno);
  if (fd > 2) return Fd(fd);
  const Fd low(fd);
  const int high = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (high < 0) throw system_error(what, errno);
  return Fd(high);
}

std::pair<Fd, Fd> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw system_error("pipe", errno);
  Fd write_end(ends[1]);
  Fd read_end = above_standard(ends[0], "pipe");
  const int raw = ::dup(write_end.get());  // above_standard takes over what it is given
  write_end.reset();
  Fd high = above_standard(raw, "pipe");
  ::fcntl(high.get(), F_SETFD, FD_CLOEXEC);
  ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
  return {std::move(read_end), std::move(high)};
}

Fd open_input(const std::string& input) {
  if (input.empty()) return above_standard(::open("/dev/null", O_RDONLY | O_CLOEXEC), "open /dev/null");
  Fd file = above_standard(::memfd_create("stdin", MFD_CLOEXEC), "memfd_create");
  for (std::size_t done = 0; done < input.size();) {
    const ssize_t n = ::write(file.get(), input.data() + done, input.size() - done);
    if (n < 0 && errno != EINTR) throw system_error("input of a child", errno);
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

// The guards that this process has running. A child of ours that is none of them, once we are a subreaper, is
// what an ended guard left.
struct Guards {
  std::mutex mutex;  // also held while one is being started
  std::set<pid_t> pids;
};
Guards& guards() {
  static auto* const all = new Guards;  // outlives every thread
  return *all;
}
std::atomic<bool> is_subreaper{false};

void kill_strays() {
  if (!is_subreaper) return;
  const std::lock_guard lock(guards().mutex);
  for (int round = 0; round < 400; ++round) {
    bool any = false;
    for (const pid_t child : children_of(::getpid())) {
      if (guards().pids.contains(child)) continue;
      any = true;
      for (const pid_t below : descendants(child)) ::kill(below, SIGKILL);
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, WNOHANG);
    }
    if (!any) return;
    const timespec nap{0, 5'000'000};
    ::nanosleep(&nap, nullptr);
  }
}

// What runs between fork and exec: only system calls.
struct Descriptors {
  std::array<int, 3> standard;  // -1: inherited
  int status, lifeline;
  const int* keep;
  std::size_t keep_count;

  void apply() const noexcept {
    for (int i = 0; i < 3; ++i)
      if (standard[static_cast<std::size_t>(i)] >= 0) ::dup2(standard[static_cast<std::size_t>(i)], i);
    close_others_on_exec();
    ::fcntl(status, F_SETFD, 0);
    ::fcntl(lifeline, F_SETFD, 0);
    for (std::size_t i = 0; i < keep_count; ++i) ::fcntl(keep[i], F_SETFD, 0);
  }

  static void close_others_on_exec() noexcept {
    constexpr unsigned kCloseRangeCloexec = 4;
#ifdef __NR_close_range
    if (::syscall(__NR_close_range, 3u, ~0u, kCloseRangeCloexec) == 0) return;
#endif
    const long most = std::min(::sysconf(_SC_OPEN_MAX), 65536L);
    for (int fd = 3; fd < most; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
};

pid_t start_guard(const std::vector<std::string>& command,
                  const std::map<std::string, std::string>& environment, const Descriptors& descriptors) {
  bp::environment block;
  // set(), not []: that reads beyond the end of entries shorter than the name (Boost 1.74).
  for (const auto& [name, value] : environment) block.set(name, value);
  std::error_code error;
  const std::lock_guard lock(guards().mutex);
  bp::child child(
      bp::exe = command.front(), bp::args = std::vector<std::string>(command.begin() + 1, command.end()),
      block, error, bp::extend::on_exec_setup = [&](auto&) { descriptors.apply(); });
  if (error) throw Error("cannot start " + command.front() + ": " + error.message());
  const pid_t pid = child.id();
  child.detach();  // reaped by us, through its pidfd
  guards().pids.insert(pid);
  return pid;
}

}  // namespace

// A captured stream of the child.
struct Stream {
  Fd fd;
  std::string* kept = nullptr;
  std::uint64_t* dropped = nullptr;

  // Takes what is there. False at its end.
  bool read_some(std::uint64_t limit) {
    std::array<char, 1 << 16> buffer;
    for (int i = 0; i < 64; ++i) {
      const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno == EAGAIN;
      if (n == 0) return false;
      const auto got = static_cast<std::size_t>(n);
      const auto room =
          limit > kept->size() ? static_cast<std::size_t>(limit - kept->size()) : std::size_t{0};
      kept->append(buffer.data(), std::min(room, got));
      *dropped += got - std::min(room, got);
    }
    return true;
  }
};

struct Child::State {
  ChildSpec spec;
  pid_t guard = -1, program = -1;
  Fd pidfd, lifeline, status;
  Stream out, err;
  std::string answers;  // of the guard, not yet taken
  ChildResult result;
  std::optional<int> inner;  // wait status seen inside the namespace
  double inner_cpu_s = 0;
  std::uint64_t inner_peak = 0;
  bool is_running = false, ended = false, asked_to_stop = false, flooded = false, guard_answered = false;
  Clock::time_point begin;

  explicit State(const ChildSpec& s) : spec(s) {}
  ~State() {
    if (guard < 0 || ended) return;
    order('K');
    while (!ended) pump(-1);
  }

  void start() {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
      throw system_error("socketpair", errno);
    lifeline = above_standard(pair[0], "socketpair");
    const Fd lifeline_end = above_standard(pair[1], "socketpair");
    auto [status_read, status_write] = make_pipe();
    status = std::move(status_read);
    const Fd input = open_input(spec.input);
    Fd out_write, err_write;
    if (spec.capture_output) std::tie(out.fd, out_write) = make_pipe();
    if (!spec.stderr_file.empty())
      err_write =
          above_standard(::open(spec.stderr_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666),
                         ("cannot append to " + spec.stderr_file.string()).c_str());
    else if (spec.capture_output)
      std::tie(err.fd, err_write) = make_pipe();
    if (spec.stdout_to_stderr && err_write) {
      out.fd.reset();
      out_write.reset();
    }
    const Descriptors descriptors{
        {input.get(), spec.stdout_to_stderr && err_write ? err_write.get() : out_write.get(),
         err_write.get()},
        status_write.get(),
        lifeline_end.get(),
        spec.keep_fds.data(),
        spec.keep_fds.size()};
    out.kept = &result.out;
    out.dropped = &result.out_dropped;
    err.kept = &result.err;
    err.dropped = &result.err_dropped;
    begin = Clock::now();
    guard = start_guard(guard_command(spec, status_write.get(), lifeline_end.get()), child_environment(spec),
                        descriptors);
    pidfd = Fd(static_cast<int>(
        ::syscall(SYS_pidfd_open, guard, 0)));  // kernels before 5.3: none, the status pipe's end serves
    status_write.reset();
    out_write.reset();
    err_write.reset();
    while (!is_running && !ended) pump(-1);
  }

  void order(char what) {
    if (lifeline) ::send(lifeline.get(), &what, 1, MSG_NOSIGNAL);
  }

  // Waits up to timeout_ms (-1: forever) for output, an answer or the end, and takes it.
  void pump(int timeout_ms) {
    if (ended) return;
    pollfd fds[4] = {{out.fd.get(), POLLIN, 0},
                     {err.fd.get(), POLLIN, 0},
                     {status.get(), POLLIN, 0},
                     {pidfd.get(), POLLIN, 0}};
    if (::poll(fds, 4, timeout_ms) <= 0) return;
    const bool last = fds[3].revents != 0;
    if (out.fd && !out.read_some(spec.limits.output_bytes)) out.fd.reset();
    if (err.fd && !err.read_some(spec.limits.output_bytes)) err.fd.reset();
    if (!flooded && std::max(result.out_dropped, result.err_dropped) > kFlood) {
      flooded = true;
      order('K');
    }
    const bool more = take_answers();
    if (last || (!pidfd && !more)) finish();
  }

  // False at the end of the answers.
  bool take_answers() {
    bool more = true;
    std::array<char, 4096> buffer;
    while (status) {
      const ssize_t n = ::read(status.get(), buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) break;
      if (n == 0) {
        more = false;
        status.reset();
        break;
      }
      answers.append(buffer.data(), static_cast<std::size_t>(n));
    }
    for (auto at = answers.find('\n'); at != std::string::npos; at = answers.find('\n')) {
      take_answer(answers.substr(0, at));
      answers.erase(0, at + 1);
    }
    return more && static_cast<bool>(status);
  }

  void take_answer(const std::string& line) {
    int wait_status = 0;
    long long cpu_us = 0, peak_kib = 0;
    char reason[16] = {};
    if (line.starts_with("pid ")) {
      program = static_cast<pid_t>(std::atoi(line.c_str() + 4));
    } else if (line == "running") {
      is_running = true;
    } else if (line.starts_with("error ")) {
      result.problem = line.substr(6);
      guard_answered = true;
    } else if (std::sscanf(line.c_str(), "inner %d %lld %lld", &wait_status, &cpu_us, &peak_kib) == 3) {
      inner = wait_status;
      inner_cpu_s = static_cast<double>(cpu_us) / 1e6;
      inner_peak = static_cast<std::uint64_t>(peak_kib) * 1024;
    } else if (std::sscanf(line.c_str(), "end %15s %d %lld %lld", reason, &wait_status, &cpu_us, &peak_kib) ==
               4) {
      guard_answered = true;
      result.cpu_s = static_cast<double>(cpu_us) / 1e6;
      result.peak_memory_bytes = static_cast<std::uint64_t>(peak_kib) * 1024;
      conclude(reason, wait_status);
    }
  }

  void conclude(std::string_view reason, int wait_status) {
    if (!is_running) return;  // bubblewrap ended before the program began
    if (inner) {
      if (reason == "exit") wait_status = *inner;
      result.cpu_s = std::max(result.cpu_s, inner_cpu_s);
      result.peak_memory_bytes = std::max(result.peak_memory_bytes, inner_peak);
    }
    if (reason == "exit" && WIFEXITED(wait_status)) {
      result.ending = Ending::kExited;
      result.exit_code = WEXITSTATUS(wait_status);
      return;
    }
    result.signal = reason == "exit" && WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : SIGKILL;
    const bool over_cpu =
        spec.limits.cpu_s > 0 &&
        (result.signal == SIGXCPU || (result.signal == SIGKILL && result.cpu_s >= spec.limits.cpu_s));
    if (flooded)
      result.ending = Ending::kOutputLimit;
    else if (reason == "wall")
      result.ending = Ending::kTimedOut;
    else if (reason == "memory")
      result.ending = Ending::kMemoryLimit;
    else if (reason == "stop" || asked_to_stop)
      result.ending = Ending::kStopped;
    else if (over_cpu)
      result.ending = Ending::kTimedOut;
    else if (result.signal == SIGXFSZ)
      result.ending = Ending::kOutputLimit;
    else
      result.ending = Ending::kSignaled;
    if (std::string over = over_scratch(reason, spec.limits); !over.empty()) {
      result.ending = Ending::kOutputLimit;
      result.problem = std::move(over);
    }
    if (reason == "processes")
      result.problem = "more than " + std::to_string(spec.limits.processes) + " processes";
  }

  void finish() {
    ended = true;
    if (out.fd) out.read_some(spec.limits.output_bytes);
    if (err.fd) err.read_some(spec.limits.output_bytes);
    take_answers();
    {
      const std::lock_guard lock(guards().mutex);
      while (::waitpid(guard, nullptr, 0) < 0 && errno == EINTR) {
      }
      guards().pids.erase(guard);
    }
    if (!guard_answered) {
      kill_strays();
      result.ending = asked_to_stop ? Ending::kStopped : Ending::kSignaled;
      result.signal = SIGKILL;
      result.problem = "its guard was killed";
    }
    if (!is_running && guard_answered) {
      result.ending = Ending::kNotStarted;
      if (result.problem.empty())
        result.problem =
            trim(result.err).empty() ? "the sandbox ended before the program began" : trim(result.err);
    }
    result.wall_s = std::chrono::duration<double>(Clock::now() - begin).count();
    lifeline.reset();
  }
};

ChildResult ask_program(const ChildSpec& spec) {
  constexpr int kTimes = 3;
  for (int i = 1;; ++i) {
    ChildResult result = run_child(spec);
    const bool killed = result.ending == Ending::kSignaled || result.ending == Ending::kStopped;
    if (!killed) return result;
    if (i == kTimes)
      throw Error((spec.argv.empty() ? "" : spec.argv.front()) + ": ended by signal " +
                  std::to_string(result.signal) + " each time that it was asked");
  }
}

ChildResult run_child(const ChildSpec& spec) {
  try {
    Child child(spec);
    return child.wait();
  } catch (const Error& e) {
    ChildResult result;
    result.problem = e.what();
    return result;
  }
}

Child::Child(const ChildSpec& spec) : state_(std::make_unique<State>(spec)) {
  state_->start();
  if (state_->ended && state_->result.ending == Ending::kNotStarted)
    throw Error("cannot start " + spec.argv[0] + ": " + state_->result.problem);
}
Child::~Child() = default;
Child::Child(Child&&) noexcept = default;
Child& Child::operator=(Child&&) noexcept = default;

pid_t Child::pid() const { return state_->program; }
int Child::event_fd() const { return state_->pidfd ? state_->pidfd.get() : state_->status.get(); }

bool Child::running() {
  state_->pump(0);
  return !state_->ended;
}

void Child::terminate() {
  state_->asked_to_stop = true;
  state_->order('T');
}

void Child::kill() {
  state_->asked_to_stop = true;
  state_->order('K');
}

ChildResult Child::wait() {
  while (!state_->ended) state_->pump(-1);
  return state_->result;
}

void become_subreaper() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
    throw system_error("cannot become a subreaper", errno);
  is_subreaper = true;
}

}  // namespace warpsmith::process
