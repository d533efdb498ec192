#include <gtest/gtest.h>

#include <map>

#include "world.h"

namespace warpsmith::stages {
namespace {

std::string text(const workflow::StageSpec& spec) {
  std::string out;
  for (const PlannedJob& job : planned_jobs(spec, {}))
    out += std::to_string(job.round) + "/" + job.job + (job.upper_bound ? " <= " : " ") +
           std::to_string(job.items) + "\n";
  return out;
}

TEST(PlannedJobs, OfEachKind) {
  const auto plan = [](const char* kind, workflow::StageSettings settings) {
    StageInputs inputs = make_inputs("s", kind, std::move(settings));
    inputs.spec.sample.max_tokens = 100;
    inputs.spec.model.context = 200;
    inputs.spec.optimizer.batch_tokens = 1000;
    return text(inputs.spec);
  };
  EXPECT_EQ(plan("collect", workflow::CollectSettings{}), "0/collect 4\n0/compile 0\n0/measure 0\n");
  EXPECT_EQ(plan("sft", workflow::SftSettings{.steps = 9}), "0/train 9\n");
  EXPECT_EQ(plan("self_supervised", workflow::SelfSupervisedSettings{.rounds = 2, .samples = 20, .steps = 5}),
            "1/generate 4\n1/compile <= 40\n1/measure <= 40\n1/train <= 5\n"
            "2/generate 4\n2/compile <= 40\n2/measure <= 40\n2/train <= 5\n");
  // 3 x 4 samples of 100 tokens, 3 prompts of 200: two batches, two epochs
  EXPECT_EQ(
      plan("contrastive", workflow::ContrastiveSettings{.rounds = 1, .prompts = 3, .group = 4, .epochs = 2}),
      "1/generate 3\n1/compile <= 12\n1/measure <= 12\n1/train <= 4\n");
  // 24 samples of 100 tokens, 3 prompts and 12 of the second turn of 200: more batches than groups
  EXPECT_EQ(
      plan("contrastive",
           workflow::ContrastiveSettings{.rounds = 1, .prompts = 3, .group = 4, .turns = 2, .epochs = 2}),
      "1/generate 3\n1/compile <= 12\n1/measure <= 12\n"
      "1/generate-2 <= 12\n1/compile-2 <= 12\n1/measure-2 <= 12\n1/train <= 6\n");
  EXPECT_EQ(plan("contrastive",
                 workflow::ContrastiveSettings{.rounds = 1, .prompts = 3, .group = 4, .update = false}),
            "1/generate 3\n1/compile <= 12\n1/measure <= 12\n");
  EXPECT_EQ(plan("measure", workflow::MeasureSettings{.checkpoint_of = "x", .samples = 32}),
            "0/generate 8\n0/compile <= 128\n0/measure <= 128\n");
  EXPECT_EQ(plan("measure", workflow::MeasureSettings{.candidates_of = {"x"}}),
            "0/compile <= 4\n0/measure <= 4\n");
  EXPECT_EQ(plan("command", workflow::CommandSettings{{"x"}, "tasks"}), "0/command 4\n");
  StageInputs sweep = make_inputs("s", "measure", workflow::MeasureSettings{.candidates_of_run = "/run"});
  sweep.spec.taken = std::make_shared<const workflow::TakenCandidates>(
      workflow::TakenCandidates{{program("a", "ok 1.00 x"), program("a", "ok 1.00 y")}, "d"});
  EXPECT_EQ(text(sweep.spec), "0/compile 2\n0/measure <= 2\n");
  sweep.spec.lacks = "no device";
  EXPECT_EQ(text(sweep.spec), "") << "it says so, and runs nothing";
}

TEST(PlannedJobs, AMeasurementOnAGpuIsExpectedToTakeFarLessThanItsBudget) {
  const auto measure_s = [](const std::string& device) {
    StageInputs inputs = make_inputs("s", "collect", workflow::CollectSettings{});
    inputs.spec.device = device;
    inputs.spec.protocol.budget_s = 2;
    for (const PlannedJob& job : planned_jobs(inputs.spec, {}))
      if (job.job == "measure") return job.expected_item_s;
    return -1.0;
  };
  EXPECT_GE(measure_s("cpu"), 2);
  EXPECT_GT(measure_s("H200"), 0);
  EXPECT_LT(measure_s("H200"), 0.5);
}

TEST(PlannedJobs, SamplingOnSeveralGpusIsAsManyShards) {
  StageInputs inputs = make_inputs("s", "self_supervised", workflow::SelfSupervisedSettings{});
  inputs.spec.generate_shards = 4;
  int seen = 0;
  for (const PlannedJob& job : planned_jobs(inputs.spec, {})) {
    EXPECT_EQ(job.least_shards, job.job == "generate" ? 4 : 1);
    seen += job.job == "generate";
  }
  EXPECT_GT(seen, 0);
}

// A shard that times every baseline of its tasks behind its candidates is not to be one for all of them.
TEST(PlannedJobs, BaselinesOfEachTaskCountInAMeasurement) {
  const auto item_s = [](const std::vector<std::string>& baselines,
                         const std::vector<Candidate>& candidates) {
    StageInputs inputs = make_inputs("s", "measure", workflow::MeasureSettings{.candidates_of_run = "/run"});
    inputs.spec.device = "H200";
    inputs.spec.protocol.baselines = baselines;
    inputs.spec.taken =
        std::make_shared<const workflow::TakenCandidates>(workflow::TakenCandidates{candidates, "d"});
    for (const PlannedJob& job : planned_jobs(inputs.spec, {}))
      if (job.job == "measure") return job.expected_item_s;
    return -1.0;
  };
  const Candidate one = program("a", "ok 1.00 x"), two = program("a", "ok 1.00 y"),
                  other = program("b", "ok 1.00 x");
  const double none = item_s({}, {one});
  EXPECT_GT(item_s({"all"}, {one}), none + 30);
  EXPECT_DOUBLE_EQ(item_s({"torch_compile"}, {one, two}), none + 7.5) << "two share their task's";
  EXPECT_DOUBLE_EQ(item_s({"torch_compile"}, {one, other}), none + 15);
}

// What is built with torch's headers is packed apart: else one shard would build all of them, one by one.
TEST(PlannedJobs, CandidatesThatAreKnownAreExpectedToTakeWhatTheirTiersTake) {
  const auto compile_s = [](Tier tier, const std::string& text) {
    StageInputs inputs = make_inputs("s", "measure", workflow::MeasureSettings{.candidates_of_run = "/run"});
    Candidate candidate = program("a", "ok 1.00 x");
    candidate.tier = tier;
    candidate.files.front().content = text;
    inputs.spec.taken =
        std::make_shared<const workflow::TakenCandidates>(workflow::TakenCandidates{{candidate}, "d"});
    return planned_jobs(inputs.spec, {}).front().expected_item_s;
  };
  EXPECT_LT(compile_s(Tier::kPlan, "load_inline"), 1);
  EXPECT_GT(compile_s(Tier::kPython, "import torch"), 2);
  EXPECT_GT(compile_s(Tier::kPython, "load_inline(name='x')"), 30);
  EXPECT_GT(compile_s(Tier::kExtension, "torch::Tensor"), 10);
}

TEST(PlannedJobs, BoundWhatAStageAsksFor) {
  StageInputs inputs = make_inputs("ssl", "self_supervised",
                                   workflow::SelfSupervisedSettings{.rounds = 2, .samples = 20, .steps = 3});
  inputs.spec.generate.cpus = 2;
  inputs.spec.compile.cpus = 3;
  inputs.spec.measure.cpus = 4;
  inputs.spec.train.cpus = 5;
  add_upstream(inputs, "sft", {{"checkpoint", "checkpoints/sft-1"}});
  World world;
  world.answer = [](const JobRequest& job, const Json& item) {
    std::vector<std::string> out;
    for (int i = 0; i < item["n"].get<int>(); ++i)
      out.push_back("ok 1.00 " + item["id"].get<std::string>() + std::to_string(job.round * 100 + i));
    return out;
  };
  world.drive(inputs);
  std::map<std::string, PlannedJob> planned;
  for (const PlannedJob& job : planned_jobs(inputs.spec, inputs.tasks))
    planned[std::to_string(job.round) + "/" + job.job] = job;
  ASSERT_EQ(planned.size(), world.log.size());
  for (const JobRequest& job : world.log) {
    const PlannedJob& p = planned.at(std::to_string(job.round) + "/" + job.job);
    EXPECT_EQ(job.items.size(), p.items) << job.job;  // nothing was repeated or failed: the bound is reached
    EXPECT_EQ(job.one_shard, p.one_shard) << job.job;
    EXPECT_EQ(job.program, p.program);
    EXPECT_EQ(job.resources, p.resources) << job.job;
  }
}

}  // namespace
}  // namespace warpsmith::stages
