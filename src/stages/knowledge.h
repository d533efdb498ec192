// What a stage can learn from the outputs of the stages before it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "warpsmith/method/prompt.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/records/measurement.h"
#include "warpsmith/stages/stage.h"

namespace warpsmith::stages {

// A candidate with its verdict.
struct Known {
  Candidate candidate;
  Measurement measurement;
  std::string
      folder;  // attempt folder with the measurement's samples, relative to the run folder; may be empty
  std::string expected;         // dataset files: the verdict that they must get
  std::string made_by;          // stage in whose output it was found; empty: this stage
  bool taken_as_right = false;  // no measurement: a program of a task of group `sft_only`
  Json code = Json::object();   // code_structure() of what it was compiled to, by target, where that is known
};

// Whether a model of a workflow wrote it: not a person, augmentation, a teacher or an import.
inline bool is_by_model(const Candidate& candidate) { return candidate.origin.kind == "generated"; }

inline method::PromptForm form_of(const workflow::PromptSettings& prompt) {
  return {method::parse_prompt_style(prompt.style), parse_tier(prompt.answer)};
}
// Whether a model that answers with programs of tier `answer` may learn from it, or be shown it: an answer is
// one file.
inline bool is_example(const Candidate& candidate, Tier answer) {
  return candidate.tier == answer && candidate.files.size() == 1;
}

// What makes numbers comparable: device kind, baseline, math, threads and the settings of the timing. Its
// `math` is what the workflow asks for; what counts for a task is math_of().
Json protocol_of(const workflow::StageSpec& spec);
// The math at which the stage measures the programs of a task.
std::string math_of(const StageInputs& inputs, const std::string& task);

enum class Comparable {
  kProtocol,  // measured under the very same protocol, at the same math: its number can be used as it stands
  kDevice,    // measured on the same device kind: its verdict can
  kAnything   // measured on whatever: a program that cheats cheats everywhere
};

// Candidates with a verdict (not `not_measured`) in the outputs of `stages`, in their order, each id once:
// the first one that is comparable with what `spec` would measure.
std::vector<Known> known_candidates(const StageInputs& inputs, const std::vector<std::string>& stages,
                                    Comparable comparable);

// Programs that stage 1 learns as they are, in the outputs of `stages`: they have no measurement.
std::vector<Known> unmeasured_programs(const StageInputs& inputs, const std::vector<std::string>& stages);

// The newest checkpoint upstream, relative to the run folder, and its step.
struct Checkpoint {
  std::string path;
  std::int64_t step = 0;
  std::string digest = {};  // empty: its stage did not say
};
std::optional<Checkpoint> newest_checkpoint(const StageInputs& inputs);
// Throws Error (exit code 2) that says what the stage misses.
Checkpoint require_checkpoint(const StageInputs& inputs);
// The model that a stage's rounds begin with: require_checkpoint(), or none where a server alone has it.
Checkpoint first_checkpoint(const StageInputs& inputs);
// That of one stage; throws Error where it left none.
Checkpoint checkpoint_of(const StageInputs& inputs, const std::string& stage);

// The instance that `name` means: itself, or the only instance of that stage. Throws Error.
std::string instance_of(const StageInputs& inputs, const std::string& name);

// The tasks of a stage's dataset settings.
class TaskSet {
 public:
  // Throws Error where the dataset settings name a task that is not in `tasks`. Keeps a reference to them.
  TaskSet(const workflow::DatasetSettings& dataset, const std::vector<task::Task>& tasks);
  const task::Task& at(const std::string& id) const;
  // "train", "heldout_combination", "heldout_operation", "heldout_length", "sft_only"; "extra" for a task
  // that the settings do not name
  const std::string& group(const std::string& id) const;
  const std::vector<std::string>& train() const { return train_; }
  const std::vector<std::string>& all() const { return all_; }  // train, then all kinds of held-out tasks
  const std::vector<std::string>& sft_only() const { return sft_only_; }

 private:
  std::map<std::string, const task::Task*> by_id_;
  std::map<std::string, std::string> group_;
  std::vector<std::string> train_, all_, sft_only_;
};

}  // namespace warpsmith::stages
