#include "shard_child.h"

#include <algorithm>
#include <csignal>
#include <fstream>

#include "evidence.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/json.h"
#include "warpsmith/base/text.h"
#include "warpsmith/process/machine.h"

namespace warpsmith::executor {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Of a loader, a shell or our own scripts (cmake/with_torch.sh.in) that lack a program or a library.
constexpr int kCannotStart = 127;

// "04:35:04.099 warpsmith-measure error wrong GPU" as our programs log it, without what stands before the
// words.
std::string_view without_clock(std::string_view line) {
  static constexpr std::string_view kClock = "00:00:00.000 ";
  if (line.size() < kClock.size()) return line;
  for (std::size_t i = 0; i < kClock.size(); ++i)
    if (kClock[i] == '0' ? line[i] < '0' || line[i] > '9' : line[i] != kClock[i]) return line;
  const std::size_t level = line.find(' ', kClock.size());
  const std::size_t words = level == std::string::npos ? level : line.find(' ', level + 1);
  return words == std::string::npos ? line : line.substr(words + 1);
}

std::string last_line(const std::filesystem::path& log) {
  constexpr std::streamoff kEnough = 2000;
  constexpr std::size_t kLongest = 300;
  std::ifstream in(log, std::ios::ate);
  const std::streamoff size = in.tellg();
  in.seekg(std::max<std::streamoff>(0, size - kEnough));
  std::string last;
  for (std::string line; std::getline(in, line);)
    if (!trim(line).empty()) last = trim(line);
  // A log may hold any bytes, and this goes into journals and into files of JSON.
  const Json text = without_clock(last).substr(0, kLongest);
  return Json::parse(text.dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

}  // namespace

std::map<std::string, std::string> thread_environment(int threads) {
  const std::string count = std::to_string(threads);
  // Waiting threads sleep, as the processors are counted and others want them; but not at once: a training
  // step has thousands of parallel regions some ten microseconds apart, and took four times as long with a
  // sleep in each.
  return {{"OMP_NUM_THREADS", count},
          {"MKL_NUM_THREADS", count},
          {"OMP_WAIT_POLICY", "passive"},
          {"GOMP_SPINCOUNT", "10000"}};
}

process::ChildSpec shard_child_spec(const ShardCommand& command) {
  process::ChildSpec spec;
  spec.argv = {command.program};
  spec.argv.insert(spec.argv.end(), command.arguments.begin(), command.arguments.end());
  spec.environment = process::our_environment();
  for (const auto& [name, value] : thread_environment(command.threads))
    if (name != "GOMP_SPINCOUNT" || !spec.environment->contains(name)) (*spec.environment)[name] = value;
  for (const auto& [name, value] : command.environment) (*spec.environment)[name] = value;
  spec.capture_output = false;
  spec.stderr_file = command.log;
  spec.stdout_to_stderr = true;
  spec.limits.wall_s = command.limits.time_s;
  spec.limits.tree_memory_bytes = command.limits.memory_bytes;
  spec.limits.processes = 0;
  return spec;
}

ShardChild::ShardChild(ShardCommand command)
    : command_(std::move(command)),
      oom_kills_before_(oom_kills()),
      bytes_before_(command_.limits.output_bytes > 0 ? bytes_below(command_.log.parent_path()) : 0),
      child_(shard_child_spec(command_)),
      next_look_(Clock::now()) {}

bool ShardChild::running() {
  if (!child_.running()) return false;
  const auto now = Clock::now();
  if (cancelled() && now >= kill_at_) child_.kill();
  if (command_.limits.output_bytes > 0 && now >= next_look_ && !over_output_) {
    if (bytes_below(command_.log.parent_path()) > bytes_before_ + command_.limits.output_bytes) {
      over_output_ = true;
      child_.kill();
    }
    next_look_ = Clock::now() + milliseconds(500);
  }
  return true;
}

void ShardChild::cancel(milliseconds grace) {
  if (cancelled()) return;
  child_.terminate();
  kill_at_ = Clock::now() + grace;
}

Clock::time_point ShardChild::next_look() const {
  Clock::time_point next = Clock::time_point::max();
  if (cancelled()) next = std::max(kill_at_, Clock::now() + milliseconds(5));
  if (command_.limits.output_bytes > 0) next = std::min(next, next_look_);
  return next;
}

ShardEnd ShardChild::end() {
  using process::Ending;
  const process::ChildResult result = child_.wait();
  const Resources& limits = command_.limits;
  ShardEnd end{.cause = EndCause::kFailed,
               .exit_code = result.exit_code,
               .signal = result.signal,
               .wall_s = result.wall_s,
               .cpu_s = result.cpu_s,
               .peak_memory_bytes = result.peak_memory_bytes,
               .detail = result.problem};
  // A program that is told to end may still end well; then what it wrote counts.
  if (result.ending == Ending::kExited && result.exit_code == 0) {
    end.cause = EndCause::kFinished;
  } else if (cancelled()) {
    end.cause = EndCause::kCancelled;
  } else if (over_output_) {
    end.detail = "wrote more than " + format_size(limits.output_bytes) + " in its folder";
  } else if (result.ending == Ending::kExited) {
    // Programs of other people's exit with what they like when they cannot write.
    if (result.exit_code == kExitUsage) {
      end.cause = EndCause::kUserError;
      end.detail = last_line(command_.log);
    } else if (result.exit_code == kExitWrongDevice && limits.gpus > 0) {
      // As where it is seen before the start: another node, another time, may have the right one.
      end.cause = EndCause::kLaunchFailure;
      end.detail = last_line(command_.log);
    } else if (disk_is_full(command_.log.parent_path()))
      end.cause = EndCause::kDiskFull;
    else if (result.exit_code == kCannotStart)
      end.detail = last_line(command_.log);
  } else if (result.ending == Ending::kTimedOut) {
    end.cause = EndCause::kTimeout;
    end.detail =
        "ran longer than " + format_duration(milliseconds(static_cast<std::int64_t>(limits.time_s * 1000)));
  } else if (result.ending == Ending::kMemoryLimit) {
    end.cause = EndCause::kOutOfMemory;
    end.detail = "took more than " + format_size(limits.memory_bytes) + " of memory";
  } else if (result.signal == SIGKILL && oom_kills() > oom_kills_before_) {
    end.cause = EndCause::kOutOfMemory;
    end.detail = "was killed while the machine was out of memory";
  } else {
    end.cause = EndCause::kCrash;
  }
  return end;
}

}  // namespace warpsmith::executor
