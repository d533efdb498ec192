#include "warpsmith/measure/baselines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <map>
#include <optional>
#include <thread>

#include "cudnn_calls.h"
#include "gpu/arms.h"
#include "gpu/bench.h"
#include "gpu/context.h"
#include "gpu/harness.h"
#include "gpu_place.h"
#include "graph_calls.h"
#include "timing/judge.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/log.h"
#include "warpsmith/measure/gpu_baselines.h"
#include "warpsmith/measure/host.h"
#include "warpsmith/measure/python_baselines.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::measure {

namespace {

constexpr double kPatience = 300;  // seconds for a row, with five budgets on top
constexpr int kAloneRounds = 21;

bool is_python(const std::string& name) {
  return name == "torch_compile" || name == "torch_compile_reduce_overhead" || name == "torchscript";
}

task::Task load_one(const std::filesystem::path& datasets, const std::string& id) {
  Diagnostics diagnostics;
  std::optional<task::Task> task = task::load_task(datasets / id, diagnostics);
  if (!task) throw InvalidInput(diagnostics);
  return task::on_device(std::move(*task), "gpu");
}

// For all of NVIDIA's libraries in this process, before they are asked, and for good: cuDNN's graphs, and
// what of them goes to cuBLAS, have no other switch.
void forbid_tf32() { ::setenv("NVIDIA_TF32_OVERRIDE", "0", 1); }

// In a process that has the GPU: eager, and the baselines that this program has itself.
class GpuSide {
 public:
  GpuSide(const Settings& settings, std::span<const std::byte> cubin)
      : settings_(settings),
        launch_cost_(open_quick_context(settings, cubin)),
        harness_(right(gpu_, settings), cubin, source_) {
    configure_torch(settings.threads);
    watch_ = process::GpuWatch::open(gpu_.facts().uuid);
  }

  BaselineTiming measure(const task::Task& task, const std::string& name) {
    const double begin = seconds_now();
    BaselineTiming timing = blank_timing(settings_, task, name);
    timing.device_name = gpu_.facts().name;
    timing.device_uuid = gpu_.facts().uuid;
    timing.flags = torch_facts();
    timing.flags["tf32"] = timing.math == "strict" ? "off" : "torch's default";
    timing.flags["driver"] = gpu_.facts().driver;
    if (launch_cost_.contexts > 0) timing.flags["launch_ns"] = to_string(launch_cost_);
    try {
      const FileLock lock(gpu_lock_path(gpu_.facts().uuid));
      time(task, name, timing);
      if (settings_.shares_gpu) {  // others need what would be kept for the next task
        release_cached_gpu_memory();
        harness_.memory().drop_spare();
      }
    } catch (const InvalidInput&) {
      throw;
    } catch (const NotCovered& e) {
      timing.state = BaselineState::kNotCovered;
      timing.reason = e.what();
    } catch (const std::exception& e) {
      timing.reason = e.what();
    }
    timing.seconds = seconds_now() - begin;
    return timing;
  }

  EagerTimes eager(const task::Task& task) {
    const FileLock lock(gpu_lock_path(gpu_.facts().uuid));
    GpuBench bench(harness_, task, settings_);
    return {task.id, bench.alone_ns(), 0, bench.calls(), ""};
  }

 private:
  static const device::Gpu& right(const device::Gpu& gpu, const Settings& settings) {
    require_gpu(settings, gpu.facts().name);
    return gpu;
  }

  void time(const task::Task& task, const std::string& name, BaselineTiming& timing) {
    GpuBench bench(harness_, task, settings_);
    const std::unique_ptr<GpuBaselineArm> other = arm_of(bench, name, timing);
    timing.flags["places"] = std::to_string(other->places());
    PairSettings pairs = pair_settings(settings_, task.id, "baseline " + name, 0);
    pairs.calls = bench.calls();
    const RowEstimate row = estimate_row(
        *other, [&] { return other->enqueue_ns(); }, bench.row_ns(), other->most_calls(), pairs.key);
    if (row.failed.verdict != Verdict::kOk) throw Error(row.failed.detail);
    pairs.candidate_calls = row.calls;
    pairs.protocol.give_up_below = 0;  // a slow baseline is one as good
    pairs.disturbed = slowed_down(watch_);
    write_steady_pair(
        settings_, pairs, [&] { return time_pairs(bench.baseline(), *other, pairs); }, timing);
  }

  // Of a baseline that may be this much faster than eager; of one that is faster still, rows are shorter.
  static int most_calls(const GpuBench& bench) {
    constexpr int kFaster = 3;
    return std::min(kFaster * bench.calls(), std::max(bench.calls(), kMostCallsARow));
  }

  std::unique_ptr<GpuBaselineArm> arm_of(GpuBench& bench, const std::string& name, BaselineTiming& timing) {
    if (name == "eager") return bench.another_baseline();
    const MakeGpuCalls direct = [&](const GpuAddresses& inputs) {
      return make_cudnn_calls(harness_, bench.task(), bench.timing_dims(), bench.task().math == "strict",
                              inputs, timing.flags);
    };
    const MakeGpuCalls graphs = [&](const GpuAddresses& inputs) {
      auto calls =
          std::make_unique<GraphCalls>(gpu_, capture_, bench.reference(), bench.timing_dims(), inputs);
      timing.flags["graph_nodes"] = std::to_string(calls->nodes());
      return calls;
    };
    return std::make_unique<GpuBaselineArm>(harness_, bench.task(), bench.reference(), bench.timing_dims(),
                                            most_calls(bench), name == "cudnn" ? direct : graphs,
                                            bench.timed_bounds());
  }

  const Settings& settings_;
  LaunchCost launch_cost_;
  device::Gpu gpu_;
  std::optional<process::GpuWatch> watch_;
  ValueSource source_;
  GpuHarness harness_;
  const device::GpuStream capture_;
};

using Say = std::function<void(const Json&)>;

void write_line(int fd, const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = ::write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) ::_exit(0);  // nobody listens
    at += static_cast<std::size_t>(n);
  }
}

// Runs `work` in a process of its own; what it says, a line each, goes to `take`. Returns how it ended where
// that was badly: by a signal, or `patience_s` after it last said something. An Error in it is said as
// {"error", "exit_code"}.
std::string in_a_process(const std::function<void(const Say&)>& work,
                         const std::function<void(const Json&)>& take, double patience_s) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) throw system_error("pipe", errno);
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0) throw system_error("cannot fork a process for the GPU", errno);
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(0);
    ::signal(SIGPIPE, SIG_IGN);
    ::close(fds[0]);
    try {
      work([&](const Json& json) { write_line(fds[1], json); });
    } catch (const Error& e) {
      write_line(fds[1], {{"error", e.what()}, {"exit_code", e.exit_code()}});
    } catch (const std::exception& e) {
      write_line(fds[1], {{"error", e.what()}, {"exit_code", static_cast<int>(kExitEnvironment)}});
    }
    ::_exit(0);  // no destructors: of a context that is lost they would only complain
  }
  ::close(fds[1]);
  bool late = false;
  std::exception_ptr trouble;  // of `take`
  std::string read;
  for (auto heard = std::chrono::steady_clock::now();;) {
    pollfd waiting{fds[0], POLLIN, 0};
    if (::poll(&waiting, 1, 1000) <= 0) {
      late = std::chrono::duration<double>(std::chrono::steady_clock::now() - heard).count() > patience_s;
      if (late) break;
      continue;
    }
    char buffer[65536];
    const ssize_t n = ::read(fds[0], buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    read.append(buffer, static_cast<std::size_t>(n));
    heard = std::chrono::steady_clock::now();
    try {
      for (std::size_t end = read.find('\n'); end != std::string::npos; end = read.find('\n')) {
        take(parse_json(read.substr(0, end), "what a process on the GPU says"));
        read.erase(0, end + 1);
      }
    } catch (...) {
      trouble = std::current_exception();
      break;
    }
  }
  ::close(fds[0]);
  if (late || trouble) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (trouble) std::rethrow_exception(trouble);
  if (late) return "its process did not end";
  if (WIFSIGNALED(status)) return fmt::format("its process was ended by signal {}", WTERMSIG(status));
  return "";
}

}  // namespace

struct GpuBaselines::State {
  Options options;
  int tries_left = 0;  // of rows that lack memory

  bool waits_for_memory(const BaselineTiming& row) const {
    return tries_left > 0 && row.state == BaselineState::kMissing && lacks_gpu_memory(row.reason);
  }

  // One for all names: what one way to compile has made another one finds in torch's caches.
  std::filesystem::path python_folder() const { return options.cache / "python"; }
  double patience() const { return kPatience + 10 * options.settings.budget_s; }
  std::string math_of(const task::Task& task) const { return task::math_of(task, options.settings.math); }

  std::filesystem::path cached(const task::Task& task, const std::string& name) const {
    return options.cache / "baselines" / (cache_key(options.settings, task, name) + ".json");
  }

  std::optional<BaselineTiming> from_cache(const task::Task& task, const std::string& name) const {
    try {
      const std::filesystem::path path = cached(task, name);
      if (std::filesystem::exists(path)) return baseline_timing_from_json(read_json_file(path));
    } catch (const Error& e) {
      log_warning(std::string("a baseline in the cache cannot be read: ") + e.what());
    }
    return std::nullopt;
  }

  // What is missing may be there another time.
  void keep(const task::Task& task, const BaselineTiming& timing) const {
    if (timing.state == BaselineState::kMissing) return;
    try {
      const std::filesystem::path path = cached(task, timing.name);
      std::filesystem::create_directories(path.parent_path());
      write_file_atomic(path, to_json(timing).dump());
    } catch (const std::exception& e) {
      log_warning(std::string("a baseline cannot be kept: ") + e.what());
    }
  }

  // A row as soon as it is there: it is kept, so that who is stopped and goes on need not take it again.
  void note(const task::Task& task, const BaselineTiming& row) const {
    if (waits_for_memory(row)) return;
    log_info(
        row.state == BaselineState::kCovered
            ? fmt::format("baseline {} of {}: {:.3f}x eager [{:.3f}, {:.3f}] {:.0f} ns ({:.1f} s)", row.name,
                          row.task, row.ratio, row.low, row.high, row.baseline_ns, row.seconds)
            : fmt::format("baseline {} of {}: {}: {}", row.name, row.task, to_string(row.state), row.reason));
    keep(task, row);
    if (options.take) options.take(row);
  }

  std::vector<BaselineTiming> measure_here(const std::vector<const task::Task*>& tasks,
                                           const std::string& name) const {
    std::vector<BaselineTiming> rows;
    std::string error;
    const auto lacking = [&](const std::string& reason) {
      const task::Task& task = *tasks[rows.size()];
      rows.push_back(blank_timing(options.settings, task, name));
      rows.back().reason = reason;
      note(task, rows.back());
    };
    while (rows.size() < tasks.size() && error.empty()) {
      const std::size_t first = rows.size();
      const std::string how = in_a_process(
          [&](const Say& say) {
            const std::string math = math_of(*tasks[first]);
            if (name == "cudnn" && math == "strict") forbid_tf32();
            GpuSide side(options.settings, options.harness);
            for (std::size_t i = first; i < tasks.size(); ++i) {
              if (name == "cudnn" && math_of(*tasks[i]) != math) return;  // those get a process of their own
              const BaselineTiming row = side.measure(*tasks[i], name);
              say(to_json(row));
              if (row.state == BaselineState::kMissing)
                return;  // the next one gets a process that nothing has happened to
            }
          },
          [&](const Json& said) {
            if (!said.contains("error")) {
              const task::Task& task = *tasks[rows.size()];
              rows.push_back(baseline_timing_from_json(said));
              note(task, rows.back());
              return;
            }
            error = said["error"].get<std::string>();
            if (said.value("exit_code", 0) == kExitWrongDevice) throw Error(error, kExitWrongDevice);
          },
          patience());
      if (error.empty() && (!how.empty() || rows.size() == first))
        lacking(how.empty() ? "its process ended" : how);
    }
    while (rows.size() < tasks.size()) lacking(error);
    return rows;
  }

  std::vector<BaselineTiming> measure_by_python(const std::vector<const task::Task*>& tasks,
                                                const std::string& name) const {
    PythonBaselines python(options.settings, "cuda", python_folder());
    std::vector<BaselineTiming> rows;
    for (const task::Task* task : tasks) {
      rows.push_back(python.measure(*task, name));
      note(*task, rows.back());
    }
    return rows;
  }

  std::vector<BaselineTiming> measure_cudnn(const std::vector<const task::Task*>& tasks) const {
    std::vector<const task::Task*> with;
    for (const task::Task* task : tasks)
      if (task->cudnn) with.push_back(task);
    const std::vector<BaselineTiming> covered = measure_here(with, "cudnn");
    std::vector<BaselineTiming> rows;
    std::size_t next = 0;
    for (const task::Task* task : tasks) {
      if (task->cudnn) {
        rows.push_back(covered[next++]);
        continue;
      }
      rows.push_back(blank_timing(options.settings, *task, "cudnn"));
      rows.back().state = BaselineState::kNotCovered;
      rows.back().reason = "the task names no operator of cuDNN";
      note(*task, rows.back());
    }
    return rows;
  }

  std::vector<BaselineTiming> measure_once(const std::vector<const task::Task*>& tasks,
                                           const std::string& name) const {
    if (name == "cudnn") return measure_cudnn(tasks);
    return is_python(name) ? measure_by_python(tasks, name) : measure_here(tasks, name);
  }

  // Other shards on the same GPU may have had the memory: such rows are tried again, before they are noted.
  std::vector<BaselineTiming> measure(const std::vector<const task::Task*>& tasks, const std::string& name) {
    constexpr int kTries = 4;
    constexpr double kPauseS = 10;
    tries_left = options.settings.shares_gpu ? kTries - 1 : 0;
    std::vector<BaselineTiming> rows = measure_once(tasks, name);
    while (tries_left > 0) {
      std::vector<std::size_t> waiting;
      std::vector<const task::Task*> again;
      for (std::size_t i = 0; i < rows.size(); ++i)
        if (waits_for_memory(rows[i])) {
          waiting.push_back(i);
          again.push_back(tasks[i]);
        }
      if (again.empty()) break;
      std::this_thread::sleep_for(std::chrono::duration<double>(kPauseS));
      --tries_left;
      std::vector<BaselineTiming> later = measure_once(again, name);
      for (std::size_t i = 0; i < waiting.size(); ++i) rows[waiting[i]] = std::move(later[i]);
    }
    return rows;
  }

  // Each side in a process of its own.
  std::vector<EagerTimes> eager_times(const std::vector<std::string>& task_ids) const {
    std::vector<EagerTimes> times;
    PythonBaselines python(options.settings, "cuda", python_folder());
    try {
      if (!task_ids.empty())
        python.eager_alone(load_one(options.datasets, task_ids.front()), 1, 1);  // it starts
    } catch (const Error&) {
      // Each task will say so.
    }
    const std::string how = in_a_process(
        [&](const Say& say) {
          GpuSide side(options.settings, options.harness);
          for (const std::string& id : task_ids) {
            const EagerTimes t = side.eager(load_one(options.datasets, id));
            say({{"task", t.task}, {"ns", t.ours_ns}, {"calls", t.calls}});
          }
        },
        // Python's turn at each task comes as soon as the GPU's lock is free, not after all of ours: a GPU's
        // clock may be another a minute later.
        [&](const Json& said) {
          if (said.contains("error")) throw Error(said["error"].get<std::string>());
          EagerTimes& t =
              times.emplace_back(EagerTimes{said.at("task").get<std::string>(), said.at("ns").get<double>(),
                                            0, said.at("calls").get<int>(), ""});
          try {
            t.python_ns =
                stats::median(python.eager_alone(load_one(options.datasets, t.task), t.calls, kAloneRounds));
          } catch (const Error& e) {
            t.problem = e.what();
          }
        },
        patience());
    if (!how.empty()) throw Error("eager: " + how);
    if (times.size() != task_ids.size()) throw Error("eager: its process ended");
    return times;
  }
};

GpuBaselines::GpuBaselines(Options options) : state_(std::make_unique<State>()) {
  load_torch_cuda();
  state_->options = std::move(options);
}
GpuBaselines::~GpuBaselines() = default;

std::vector<BaselineTiming> GpuBaselines::measure(const std::vector<std::string>& task_ids,
                                                  const std::vector<std::string>& names) {
  std::vector<task::Task> tasks;
  for (const std::string& id : task_ids) tasks.push_back(load_one(state_->options.datasets, id));
  std::map<std::pair<std::string, std::string>, BaselineTiming> all;  // by task and name
  for (const std::string& name : names) {
    std::vector<const task::Task*> open;
    for (const task::Task& task : tasks) {
      std::optional<BaselineTiming> known = state_->from_cache(task, name);
      if (!known) {
        open.push_back(&task);
        continue;
      }
      if (state_->options.take) state_->options.take(*known);
      all.insert_or_assign({task.id, name}, std::move(*known));
    }
    if (open.empty()) continue;
    for (BaselineTiming& row : state_->measure(open, name)) {
      std::pair key{row.task, name};
      all.insert_or_assign(std::move(key), std::move(row));
    }
  }
  std::vector<BaselineTiming> rows;
  for (const std::string& id : task_ids)
    for (const std::string& name : names) rows.push_back(all.at({id, name}));
  return rows;
}

std::vector<EagerTimes> GpuBaselines::eager_times(const std::vector<std::string>& task_ids) {
  return state_->eager_times(task_ids);
}

}  // namespace warpsmith::measure
