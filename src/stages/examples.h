// The training examples of stage 1, which stage 2 replays.
#pragma once

#include <string>
#include <vector>

#include "knowledge.h"

namespace warpsmith::stages {

// All that they depend on besides tasks and candidates; kept in the output of an `sft` stage, so that a later
// stage makes the same ones.
struct ExampleSettings {
  std::vector<std::string> from;  // stages whose candidates are used, in order
  std::string style = "full", answer = "plan";
  int exemplars = 2;  // N
  double contrastive_share = 0.3;
  bool successes_only = true;
  std::uint64_t key = 0;  // of the draws
};
Json to_json(const ExampleSettings& settings);
ExampleSettings example_settings_from_json(const Json& json);

// Lines of examples.jsonl: {"id", "prompt", "completion", "weight"}; "shorter" of those with exemplars: the
// same prompt with ever fewer, of which the first that fits the model's context is used.
//
// Each success of a train task once with the prompt of stage 1 (successes_only = false: each candidate,
// whatever its verdict), and each program that is taken as right; and, so that they are `contrastive_share`
// of all, examples with the contrastive prompt. For one of these, a task is taken in turn, N + 1 of its
// distinct scored successes are drawn (fewer where it has fewer, but two at least), the best is the target
// and the others are the exemplars: what is learned is to answer with something faster than what is shown.
// Programs that are taken as right have no score. Where there are such, three in four of these examples are
// made of them: the prompt says "not measured", the target is any program of the task, shown or not, and
// what is learned is to answer such a prompt at all.
// Where a few successes would give only a few contrastive examples, the whole is made several times over,
// each time with other draws, so that the share stays and the draws are many.
std::vector<Json> sft_examples(const TaskSet& tasks, const std::vector<Known>& candidates,
                               const ExampleSettings& settings);
// The same from all that the stages `settings.from` hold.
std::vector<Json> sft_examples(const StageInputs& inputs, const TaskSet& tasks,
                               const ExampleSettings& settings);

// {"id", "prompt", "completion", "weight"}
Json make_example(std::string id, std::string prompt, std::string completion);

}  // namespace warpsmith::stages
