// A run's folder: where things lie in it, who has it, and what it holds. Format document: results/README.md.
//
//   run.json, workflow.yaml, state.json, controller.lock, journal/<epoch>.jsonl, cache/,
//   checkpoints/<stage>-<hash8>-<step>/, stages/<stage>/<hash8>/{inputs.json, output.json, accepted.json,
//   <round>/<job>/{job.json, items.jsonl, <shard>/…}}
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/plan/plan.h"
#include "warpsmith/records/run_files.h"

namespace warpsmith::controller {

inline fs::path stage_folder(const fs::path& run, const std::string& stage, const std::string& hash) {
  return run / "stages" / stage / plan::hash8(hash);
}
inline fs::path job_folder(const fs::path& stage_folder, int round, const std::string& job) {
  return stage_folder / std::to_string(round) / job;
}
// Where a stage's checkpoints lie, relative to the run folder: <prefix>-<step>/. Each version of a stage has
// its own.
inline std::string checkpoint_prefix(const std::string& stage, const std::string& hash) {
  return "checkpoints/" + stage + "-" + plan::hash8(hash);
}

// One controller at a time has a run. The lock is the process's own: it goes when the process does, however
// that ends, and children do not inherit it.
class RunLock {
 public:
  // Throws Error with kExitBusy, naming the holder, where another process has it. A holder that has just been
  // killed is waited for.
  explicit RunLock(const fs::path& run);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;
  // The process that has the run on this host; nothing where none has.
  static std::optional<pid_t> holder(const fs::path& run);

 private:
  int fd_ = -1;
};

// Ends what an earlier controller of this run left behind on this host: shard processes that its death has
// not ended yet. Returns how many there were; when it returns they are gone.
int end_leftovers(const fs::path& run);

// Results of earlier executions, newest first: of one stage, or of all stages in the folder.
std::vector<plan::FormerResult> read_former_results(const fs::path& run, const std::string& stage);
plan::History read_history(const fs::path& run);

// Notes that the result `result` of `stage` counts as that of `hash`.
void accept_result(const fs::path& run, const std::string& stage, const std::string& result,
                   const std::string& hash);

// Moves the result with `hash` to <run>/set_aside/, so that the same hash runs anew; it stays there until
// `clean`.
void set_aside(const fs::path& run, const std::string& stage, const std::string& hash);

// Bytes of all files below `folder`.
std::uint64_t folder_bytes(const fs::path& folder);

}  // namespace warpsmith::controller
