// What runs shards: this machine (executor/local) or a Slurm cluster (executor/slurm).
// The reactor is pure; the controller's loop carries its commands to an Executor and brings back events.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "warpsmith/records/end_cause.h"
#include "warpsmith/records/job.h"

namespace warpsmith::run {

// Identifies a shard over the whole run.
struct ShardKey {
  std::uint32_t job = 0;  // number of the job in the run, in order of creation
  std::uint32_t shard = 0;
  friend auto operator<=>(const ShardKey&, const ShardKey&) = default;
};

struct ShardStart {
  ShardKey key;
  std::filesystem::path job_file;      // <…>/job.json
  std::filesystem::path program;       // absolute
  std::vector<std::string> arguments;  // before JOB.json and SHARD
  std::filesystem::path log;           // stderr and stdout are appended here
  Resources resources;
  std::string token;  // unique name of the submission: the shards that were journaled as one range share it
};

struct ShardEvent {
  enum class Kind { kStarted, kEnded, kProgress } kind = Kind::kStarted;
  ShardKey key;
  EndCause cause = EndCause::kFinished;
  int exit_code = 0, signal = 0;
  std::string where;  // host and process id, or Slurm job id and node
  double wall_s = 0, cpu_s = 0;
  std::uint64_t peak_memory_bytes = 0;
  std::string
      detail;  // for people: what is known beyond the cause (a limit and its value, a warning); may be empty
};

// Shards that wait until somebody releases them.
struct HeldShards {
  std::uint32_t job = 0;  // number of the job in the run
  std::string tasks;      // as the cluster names them: "100_[0-3]"
  std::string reason;     // "JobHeldUser"
};

// For people: what waits, what runs and where, as `status` shows it.
struct ExecutorView {
  std::map<std::string, std::size_t> shards;  // by state and reason: "PENDING (Resources)" -> 12
  std::map<std::string, std::size_t> gpus;    // in use, by type
  std::int64_t next_start = 0;  // when the cluster expects the next one to start: seconds since 1970
  std::vector<HeldShards> held;
  std::string trouble;         // "slurmctld does not answer since 40 s"; empty: none
  std::uint64_t requests = 0;  // made of the cluster
};

// Not thread-safe: one thread calls it.
class Executor {
 public:
  virtual ~Executor() = default;
  // Takes shards to be started when there is room; returns at once.
  virtual void submit(const std::vector<ShardStart>& shards) = 0;
  virtual void cancel(const std::vector<ShardKey>& shards) = 0;
  // Waits up to `timeout` for something to happen and returns it.
  virtual std::vector<ShardEvent> poll(std::chrono::milliseconds timeout) = 0;
  // How many shards it would like to have queued.
  virtual std::size_t capacity() const = 0;
  // Ends everything; nothing of it is left when this returns.
  virtual void shut_down() = 0;

  // Whether shards go on when this process is gone. Then a controller that goes on with the run attaches to
  // those that its predecessor submitted: their events follow as if it had submitted them itself, and one
  // that nobody knows any more ends as kUnknown.
  virtual bool outlives() const { return false; }
  virtual void attach(const std::vector<ShardStart>& /*shards*/) {}
  // Lets go: what runs goes on where that is possible, for a later attach(). Else as shut_down().
  virtual void detach() { shut_down(); }
  virtual ExecutorView view() const { return {}; }
};

}  // namespace warpsmith::run
