// Job requests of the job programs; their parameters are documented at the programs (jobs/*.cc).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "knowledge.h"
#include "warpsmith/stages/stage.h"

namespace warpsmith::stages {

struct Prompt {
  std::string id;  // "<task>#<k>", unique in the job
  std::string task;
  std::string text;
  int samples = 1;
  int island = 0;                         // contrastive: where its programs belong
  std::vector<std::string> shorter = {};  // the same with ever fewer exemplars, where `text` does not fit
  // Of a later turn: the prompt and the number of the sample that is asked again, and its program's id.
  std::string first = {};
  int number = 0;
  std::string parent = {};
};

// Samples of one task are split over prompts of at most this many: shards share the work evenly, and a batch
// shares the prompt's computation.
inline constexpr int kSamplesAnItem = 16;
// `measure` with the contrastive prompt: samples that share a draw of exemplars.
inline constexpr int kSamplesADraw = 8;

// Guesses of an item's duration, for packing only.
inline constexpr double kSecondsAToken = 5e-4, kSecondsATokenOnGpu = 5e-5;
inline double seconds_a_token(const workflow::StageSpec& spec) {
  return spec.generate.gpus > 0 ? kSecondsATokenOnGpu : kSecondsAToken;
}
inline constexpr double kTrainStepSeconds = 0.1, kExportSeconds = 10;
// By tier: one kernel; host code with torch's headers; a module that loads torch, and one that builds, too.
inline constexpr double kCompilePlanSeconds = 0.3, kCompileExtensionSeconds = 30, kCompilePythonSeconds = 8,
                        kBuildSeconds = 60;
inline constexpr double kCheckSeconds = 0.5;  // beside the budget of a timing on the CPU
// On a GPU: far less than the budget; what has host code runs in a process of its own.
inline constexpr double kGpuPlanSeconds = 0.3, kGpuExtensionSeconds = 3, kGpuPythonSeconds = 8;
// Of a task's baselines, each: one that torch compiles, and another.
inline constexpr double kCompiledBaselineSeconds = 15, kBaselineSeconds = 2;
// Of a candidate of that tier.
double measure_seconds(const workflow::StageSpec& spec, Tier tier);
double compile_seconds(const Candidate& candidate);
// Of one, in the mean over these, with its share of what their tasks take; where there is none, as of tier
// `plan`.
double measure_seconds(const workflow::StageSpec& spec, const std::vector<Candidate>& candidates);
double compile_seconds(const std::vector<Candidate>& candidates);
// Timings of one CPU take turns by the host's lock: more shards would only wait for one another.
inline bool measures_in_one_shard(const workflow::StageSpec& spec) { return spec.device == "cpu"; }

// `texts`: of method::contrastive_prompts().
void set_texts(std::vector<std::string> texts, Prompt* prompt);
// As many prompts "<task>#<k>" as `samples` need, their texts empty.
std::vector<Prompt> split_samples(const std::string& task, int samples, int an_item = kSamplesAnItem);

// Tokens of a server, those of requests included whose answers were lost.
struct Spent {
  std::int64_t prompt = 0, completion = 0, lost = 0;  // lost: of both
  Spent& operator+=(const Spent& other) {
    prompt += other.prompt;
    completion += other.completion;
    lost += other.lost;
    return *this;
  }
  double money(const workflow::TokenPrices& prices) const {
    return (static_cast<double>(prompt) * prices.prompt +
            static_cast<double>(completion) * prices.completion) /
           1e6;
  }
};

// `checkpoint`: of no meaning where a server alone has the model; `spent`: of the server, in the stage's
// rounds before.
JobRequest generate_request(const workflow::StageSpec& spec, int round, const Checkpoint& checkpoint,
                            const std::vector<Prompt>& prompts, const Spent& spent = {});
// Of one teacher, by a job of this name.
JobRequest teacher_request(const workflow::StageSpec& spec, int round, const std::string& job,
                           const workflow::TeacherSettings& teacher, const std::vector<Prompt>& prompts,
                           const Spent& spent);
// The questions of the stage's checker.
JobRequest checker_request(const workflow::StageSpec& spec, int round, const std::string& job,
                           const std::vector<Prompt>& prompts, const Spent& spent);
JobRequest compile_request(const workflow::StageSpec& spec, int round,
                           const std::vector<Candidate>& candidates);

struct Compiled {
  Candidate candidate;
  std::string binary;  // relative to the run folder
  CodeFacts code = {};
};
// Whether the stage has baselines but eager timed, of each task that it measures.
bool times_other_baselines(const workflow::StageSpec& spec);

// `best`: the highest speedup known of each task, over which a score is measured again.
JobRequest measure_request(const workflow::StageSpec& spec, int round,
                           const std::vector<Compiled>& candidates,
                           const std::map<std::string, double>& best);

struct TrainJob {
  int round = 0;
  std::string mode;                // "sft", "rejection", "grpo"
  std::optional<Checkpoint> init;  // nothing: the model of the settings, at random
  std::string reference;           // grpo: checkpoint of the KL term
  std::int64_t steps = 0;
  std::vector<Json> examples;   // lines of examples.jsonl
  std::string sampled_by = {};  // grpo: checkpoint that drew the samples, where it is not `init`
};
JobRequest train_request(const workflow::StageSpec& spec, const TrainJob& job);

// Writes the checkpoint as a Hugging Face folder, `model` in the stage's. In a stage whose server gets the
// weights of each round, these jobs are named kWeights.
inline constexpr const char* kWeights = "weights";
JobRequest export_request(const workflow::StageSpec& spec, int round, const std::string& checkpoint);

struct Trained {
  Checkpoint checkpoint;
  std::string digest;
  std::vector<Json> curve;  // records of the steps, in order, without times
};
// Throws Error where no record names a checkpoint.
Trained read_trained(const workflow::StageSpec& spec, const JobResult& result);
// Last loss of a curve; null where it is empty.
Json last_loss(const std::vector<Json>& curve);

}  // namespace warpsmith::stages
