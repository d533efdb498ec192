// Which stages are up to date, which will run, and why. Pure: what the run folder holds is handed in.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "warpsmith/plan/inputs.h"

namespace warpsmith::plan {

// A result of a stage in a run folder: <run>/stages/<stage>/<hash8>/.
struct FormerResult {
  std::string hash;                   // of its inputs.json
  Json inputs;                        // `inputs` of its inputs.json
  bool finished = false;              // output.json is there
  std::string output_digest;          // SHA-256 of output.json; empty where unfinished
  std::set<std::string> accepted_as;  // hashes as which --accept declared it up to date
};
// By stage instance; newest first.
using History = std::map<std::string, std::vector<FormerResult>>;

// --from, --only, --until, --force, --accept: names of stages, or names of the file for all instances of a
// matrix.
struct Selection {
  std::vector<std::string> from;    // these, and those that need them, directly or not
  std::vector<std::string> only;    // these
  std::vector<std::string> until;   // these, and those that they need, directly or not
  std::vector<std::string> force;   // run although up to date
  std::vector<std::string> accept;  // their newest finished result counts as up to date
};
// Mistakes of a selection: unknown stages, with a suggestion.
Diagnostics check_selection(const workflow::WorkflowSpec& spec, const Selection& selection);

enum class Action {
  kUpToDate,  // a finished result with this hash is there, or one that was accepted as it
  kAccept,    // up to date by --accept: the caller notes it in the run folder
  kRun,
  kResume,   // begun with this hash, not finished
  kDepends,  // decided once the stages that it needs have run: up to date if their outputs come out as before
  kNotSelected,  // left as it is; output_digest is that of its newest finished result
  kBlocked       // cannot run: StageSpec::blocked, or it needs a stage that is not selected and has no result
};
std::string_view to_string(
    Action action);  // "up to date", "accept", "run", "resume", "depends", "not selected", "blocked"

struct StagePlan {
  std::string stage;
  Action action = Action::kRun;
  std::string reason;  // "never run", "optimizer.learning_rate: 0.004 -> 0.003", "needs sft, which will run"
  std::vector<Change> changes;  // against the newest result
  std::string hash;             // empty for kDepends, kBlocked and kRun with outputs unknown
  Json inputs;                  // hashed values; null where the hash is empty
  std::string result;           // kUpToDate, kAccept, kNotSelected: hash of the result that is used
  std::string output_digest;    // … and its output's digest
};

// A plan for every stage, in the order of the workflow. `selection` has been checked.
std::vector<StagePlan> plan_stages(const workflow::WorkflowSpec& spec, const Digests& digests,
                                   const History& history, const Selection& selection = {});

// One stage when its turn comes: the digests of all outputs that it needs are known. Never kDepends,
// kNotSelected or kBlocked.
StagePlan plan_stage(const workflow::StageSpec& stage, const DatasetDigests& digests,
                     const std::map<std::string, std::string>& upstream,
                     const std::vector<FormerResult>& former, bool force = false, bool accept = false);

// Instances named `name`: the one of that name, or all with that base name. Empty: none.
std::vector<std::string> instances(const workflow::WorkflowSpec& spec, const std::string& name);

}  // namespace warpsmith::plan
