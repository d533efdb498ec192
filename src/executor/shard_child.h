// One attempt of a shard as a child process: how it is started, and what its end means. Shared by the local
// executor and by warpsmith-shard, which does the same on a node of a cluster.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "warpsmith/process/child.h"
#include "warpsmith/records/end_cause.h"
#include "warpsmith/records/job.h"

namespace warpsmith::executor {

struct ShardCommand {
  std::filesystem::path program;
  std::vector<std::string> arguments;  // job file and shard number included
  std::filesystem::path log;           // stdout and stderr are appended to it
  int threads = 1;
  Resources limits;                                // time_s, memory_bytes, output_bytes
  std::map<std::string, std::string> environment;  // besides ours
};

// OMP_NUM_THREADS and what else makes threads share a machine well.
std::map<std::string, std::string> thread_environment(int threads);

// Environment: ours, with that of its threads.
process::ChildSpec shard_child_spec(const ShardCommand& command);

struct ShardEnd {
  EndCause cause = EndCause::kFinished;
  int exit_code = 0, signal = 0;
  double wall_s = 0, cpu_s = 0;
  std::uint64_t peak_memory_bytes = 0;
  std::string detail;
};

class ShardChild {
 public:
  explicit ShardChild(ShardCommand command);  // starts it; throws Error

  const process::Child& child() const { return child_; }
  bool running();                                // looks at its limits as well
  void cancel(std::chrono::milliseconds grace);  // SIGTERM, later SIGKILL
  bool cancelled() const { return kill_at_ != std::chrono::steady_clock::time_point{}; }
  // When running() wants to be called next at the latest.
  std::chrono::steady_clock::time_point next_look() const;
  ShardEnd end();  // after it has ended

 private:
  ShardCommand command_;
  std::uint64_t oom_kills_before_, bytes_before_;
  process::Child child_;
  std::chrono::steady_clock::time_point next_look_, kill_at_{};
  bool over_output_ = false;
};

}  // namespace warpsmith::executor
