// Runs shards on this machine, as many at once as its CPUs, memory and GPUs allow.
//
// Each shard is a child below a guard (process/child.h): when it ends, when a limit ends it, and when the
// controller dies however it dies, everything that it started is gone within 2 s. A shard gets
// OMP_NUM_THREADS, MKL_NUM_THREADS, OMP_WAIT_POLICY=passive, GOMP_SPINCOUNT=10000 (unless it is set: some 30
// us of spinning before a thread sleeps), and CUDA_VISIBLE_DEVICES with the UUIDs of the GPUs that are its
// own: empty for one that asked for none. Shards are not sandboxed: they are our programs, or the user's
// `command`.
//
// Causes: exit 0 finished, 2 user_error with the last line of its log, 3 disk_full where the log's file
// system has no room, 5 of a shard with GPUs (kExitWrongDevice) launch_failure with that line too; other
// codes failed; signals crash; time_s timeout; memory_bytes (resident memory of the whole tree)
// out_of_memory, also where the kernel's out-of-memory killer was at work; output_bytes failed; a program
// that cannot be started launch_failure.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "warpsmith/run/executor.h"

namespace warpsmith::executor {

struct LocalGpu {
  std::string uuid;  // as CUDA_VISIBLE_DEVICES takes it
  std::string type;  // as `gpu_type` of resources: "H100"
};

struct LocalOptions {
  int cpus = 0;                    // 0: those that this process may use
  std::uint64_t memory_bytes = 0;  // 0: what is available now
  std::vector<LocalGpu> gpus;      // those that shards may have
  double grace_s = 1;              // between SIGTERM and SIGKILL when shards are cancelled or shut down
};

// Shards start in the order submitted: one that does not fit yet holds those behind it, so that a large one's
// turn comes. One that waits for a GPU holds only those that want one of the same type, or of any: compilers
// need none. One that wants more CPUs or memory than there are runs alone, and its start event says so; one
// that wants more GPUs than there are, or of a type that there is not, ends as user_error. A GPU has one
// shard, or as many as all of these say may share it (Resources::shards_a_gpu).
//
// Makes this process a subreaper (process::become_subreaper).
class LocalExecutor final : public run::Executor {
 public:
  explicit LocalExecutor(LocalOptions options);
  ~LocalExecutor() override;  // as shut_down()

  void submit(const std::vector<run::ShardStart>& shards) override;
  void cancel(const std::vector<run::ShardKey>& shards) override;
  std::vector<run::ShardEvent> poll(std::chrono::milliseconds timeout) override;
  std::size_t capacity() const override;
  run::ExecutorView view() const override;
  void shut_down() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace warpsmith::executor
