// What a stage's result depends on: its content hash, and the hashed values themselves, so that a difference
// can be told.
//
// Hashed: the stage's resolved parameters (StageSpec::resolved), device kind, threads, seed, the contents of
// the task and candidate files that it uses, the digests of the outputs of the stages that it needs, of
// the candidates that it takes from another run and of the known hacks that it quotes, and the behaviour
// versions of the programs that it runs. Not hashed: time, memory, retries, partition, limits on jobs,
// notifications, and names of files.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/base/json.h"
#include "warpsmith/task/task.h"
#include "warpsmith/workflow/spec.h"

namespace warpsmith::plan {

// SHA-256 of the files of a dataset, by task id. Shapes that only GPUs time do not change a CPU's.
struct DatasetDigests {
  std::map<std::string, std::string> tasks;       // task.yaml, as a CPU needs it
  std::map<std::string, std::string> candidates;  // all candidate files: their paths and contents
  std::map<std::string, std::string> gpu_tasks;   // task.yaml, as a GPU needs it
  // The same of candidates of tiers `extension` and `python`, by tier.
  std::map<std::string, std::map<std::string, std::string>> hosted;
};
// Reads the files of the dataset folder `folder`. Throws Error.
DatasetDigests digest_dataset(const std::filesystem::path& folder);
// One for each dataset folder of the workflow.
using Digests = std::map<std::filesystem::path, DatasetDigests>;
Digests digest_datasets(const workflow::WorkflowSpec& spec);

// Raised by hand when a program's results change for equal inputs; the changelog is in src/plan/versions.cc.
int behaviour_version(std::string_view program);  // 0: not one of ours
std::vector<std::string> programs_of(
    const workflow::StageSpec& stage);  // "protocol" among them, where it measures

// The hashed values of a stage:
//   {"params": {…}, "device", "threads", "seed", "tasks": {id: digest}, "candidates": {id: digest},
//    "upstream": {stage: digest of its output.json}, "versions": {program: number},
//    "device_found": "real" | "twin" | "none",   where `device` (as the file says) is not cpu and was looked
//    for "candidates_of_run" or "imported": digest of the chosen ones' ids,
//    "hacks": {"quoted": number, "context": tokens, "database": digest}}    where known hacks are quoted
// Throws Error where the candidates of another run, or the known hacks, have not been read.
Json stage_inputs(const workflow::StageSpec& stage, const DatasetDigests& digests,
                  const std::map<std::string, std::string>& upstream);
std::string hash_inputs(const Json& inputs);  // 64 hex digits
inline std::string hash8(std::string_view hash) { return std::string(hash.substr(0, 8)); }

// <stage folder>/inputs.json: {"schema": "warpsmith.stage_inputs/1", "stage", "base", "hash", "inputs": {…}};
// base: the stage's name without the values of its matrix.
Json inputs_file(const workflow::StageSpec& stage, const Json& inputs);

// One value that differs between two sets of inputs. A value that was not there, or is no more, is empty.
struct Change {
  std::string path;           // "params.optimizer.learning_rate"
  std::string before, after;  // as JSON, shortened
};
std::vector<Change> differences(const Json& before, const Json& after);
std::string to_string(const Change& change);  // "optimizer.learning_rate: 0.004 -> 0.003"

}  // namespace warpsmith::plan
