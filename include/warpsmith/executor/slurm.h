// Runs shards on a Slurm cluster: one array of jobs for each range of shards that was journaled as one.
//
// A shard is `warpsmith-shard` in a task of an array (script.h): it runs the program with our own limits of
// time, memory and output, as the local executor does, and leaves a line beside the job about how that ended
// (<job folder>/ends/). So an end is noticed from files; what Slurm says is asked for seldom, from a token
// bucket, all jobs of this user in one request, and decides only where a shard left no word: time limit, lost
// node, killed.
//
// The array's name is its token, unique in all runs. Where the answer to a submission was lost, and when a
// controller goes on with a run, the queue is searched for the token before anything is submitted (again).
// Requests run on a thread of their own, one after another: nothing here blocks but shut_down() and the
// constructor.
//
// Causes by Slurm's word alone: COMPLETED finished; FAILED failed or crash, by exit code or signal; TIMEOUT
// and DEADLINE timeout; OUT_OF_MEMORY out_of_memory; NODE_FAIL and BOOT_FAIL node_failure; PREEMPTED
// preempted; CANCELLED, by us, cancelled, else stopped; a batch script that could not be started
// launch_failure; a request that Slurm refuses user_error; aged out of the queue unknown. After a node
// failure or a failed launch the node is left out for half an hour.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "warpsmith/executor/cluster.h"
#include "warpsmith/run/executor.h"
#include "warpsmith/workflow/site.h"

namespace warpsmith::executor {

struct SlurmOptions {
  workflow::SiteSpec site;
  std::filesystem::path programs;  // folder of warpsmith-shard, visible from the nodes
  std::filesystem::path run;       // where the batch scripts work
  std::string prefix;  // that this run's tokens begin with: what else in the queue begins so is a leftover
  double first_status_s = 2;  // from a submission to the first status request; the pauses grow to 10 s, to 30
                              // s where an answer takes long
  // A job that waits for this user's running jobs, of which there are none, never starts: after so long.
  double alone_s = 180;
  double file_grace_s = 60;  // how long a shard's last words may take to show up on a shared file system
};

class SlurmExecutor final : public run::Executor {
 public:
  // Asks the cluster for its limits. Throws SlurmError where it does not answer.
  SlurmExecutor(std::unique_ptr<Cluster> cluster, SlurmOptions options);
  ~SlurmExecutor() override;  // as detach()

  void submit(const std::vector<run::ShardStart>& shards) override;
  void cancel(const std::vector<run::ShardKey>& shards) override;
  std::vector<run::ShardEvent> poll(std::chrono::milliseconds timeout) override;
  std::size_t capacity() const override;
  // Cancels all and waits until Slurm knows of none any more, a minute at most. Throws SlurmError where that
  // could not be seen.
  void shut_down() override;
  bool outlives() const override { return true; }
  void attach(const std::vector<run::ShardStart>& shards) override;
  void detach() override;
  run::ExecutorView view() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace warpsmith::executor
