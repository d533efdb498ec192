// The controller's loop: carries a run's workflow through its stages. It joins the pure parts (reactor,
// stages, plan) with the run folder, the journal and an executor.
//
// Order on disk, so that a death at any point loses nothing and repeats nothing that is done: a job's files,
// then the journal's `job_added`; the journal's `submitted`, then the executor; records (by the shard), then
// `shard_ended`; output.json, then `stage_finished`.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/controller/replay.h"
#include "warpsmith/controller/run_folder.h"
#include "warpsmith/plan/plan.h"
#include "warpsmith/run/executor.h"
#include "warpsmith/run/journal.h"
#include "warpsmith/run/reactor.h"
#include "warpsmith/stages/stage.h"
#include "warpsmith/workflow/spec.h"

namespace warpsmith::controller {

// What the controller tells while it works; see progress.h for what people see of it.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // The state as in state.json, at most once a second, and at every change of a stage.
  virtual void on_state(const Json& state) = 0;
  // Something that a person wants to know once ("sft 0/train/0: crash (signal 9), started again").
  virtual void on_message(const std::string& message) = 0;
  // The same where nothing is wrong ("service server is up: http://node7:8000/v1").
  virtual void on_news(const std::string& message) { on_message(message); }
};

struct ControllerParts {
  const workflow::WorkflowSpec* spec = nullptr;
  fs::path run;       // its folder; exists, and this process has its RunLock
  fs::path programs;  // folder of the job programs
  run::Executor* executor = nullptr;
  RunObserver* observer = nullptr;
  std::function<std::unique_ptr<stages::Stage>(stages::StageInputs)> make_stage = stages::make_stage;
  std::function<bool()> interrupted = [] { return false; };
  // On an end that was asked for: whether shards that outlive this process are left alone, for a later one to
  // go on with.
  std::function<bool()> detach = [] { return false; };
  double late_records_s = 60;  // how long records of a shard that ended well may take to show up (NFS)
  std::function<void()> publish = [] {};  // after a stage has finished: results.h5 and the report
  plan::Selection selection;
  const ReplayTimings* replay = nullptr;
  int slots = 1;                   // CPUs that shards may use
  std::uint64_t memory_bytes = 0;  // that shards may use on this machine; 0: not known
  double start_s = 1,
         shard_s = 0;  // what starting a shard costs there, and how long it should take (0: the stage's)
  // GPUs of each type on the cluster, or of this machine: the scarcest come first, and none takes all of the
  // executor's room.
  // Empty: the executor has one queue.
  std::map<std::string, std::size_t> gpus;
  bool unsandboxed = false;
  std::string run_id;  // in the tokens of jobs
};

struct RunOutcome {
  enum class Kind {
    kFinished,
    kNothingToDo,
    kFailed,
    kInterrupted,
    kDetached,
    kOverBudget
  } kind = Kind::kFinished;
  std::vector<std::string> failed, blocked;  // stages
  bool environment = false;                  // a shard failed for a full disk
  double gpu_hours = 0;                      // used by the run, over all its lives
  Json state;                                // as in state.json at the end
};

class Controller {
 public:
  // Claims the next epoch of the journal and rebuilds the state from the earlier ones.
  explicit Controller(ControllerParts parts);
  ~Controller();
  // To the end, or until interrupted. Throws Error for faults (disk full, folder gone, another controller):
  // what was finished before is kept.
  RunOutcome run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace warpsmith::controller
