// Stages that sample a server's model: `policy: {endpoint: …}`.
#include <gtest/gtest.h>

#include "world.h"

namespace warpsmith::stages {
namespace {

workflow::EndpointSettings endpoint() {
  workflow::EndpointSettings e;
  e.url = "http://localhost:8000/v1";
  e.model = "coder";
  e.key_env = "LAB_KEY";
  return e;
}

StageInputs asked(const std::string& kind, workflow::StageSettings settings) {
  StageInputs inputs = make_inputs("asked", kind, std::move(settings));
  inputs.spec.policy = endpoint();
  add_upstream(inputs, "collect", output_with("collect", "a", {"ok 1.00 p", "ok 2.00 q"}));
  return inputs;
}

struct PolicyTest : testing::Test {
  PolicyTest() {
    world.answer = [](const JobRequest&, const Json& item) { return repeat(item, "ok 3.00 own + o"); };
    world.spent = Json{{"prompt", 100}, {"completion", 20}, {"lost", 5}};
  }
  World world;
};

TEST_F(PolicyTest, RoundsAskTheServerAndTrainNothing) {
  workflow::ContrastiveSettings settings{.rounds = 2, .prompts = 2, .group = 3};
  settings.update = false;
  const StageOutput out = world.drive(asked("contrastive", settings));
  EXPECT_EQ(world.jobs(), (std::vector<std::string>{"1/generate", "1/compile", "1/measure", "2/generate"}));
  const JobRequest& job = world.job("1/generate");
  EXPECT_EQ(job.params["endpoint"]["url"], "http://localhost:8000/v1");
  EXPECT_EQ(job.params["endpoint"]["model"], "coder");
  EXPECT_EQ(job.params["endpoint"]["key_variable"], "LAB_KEY");
  EXPECT_EQ(job.params["endpoint"]["chat"], true);
  EXPECT_FALSE(job.params["endpoint"].contains("budget"));
  EXPECT_FALSE(job.params.contains("checkpoint"));
  EXPECT_TRUE(job.one_shard) << "its limits are one program's";
  EXPECT_FALSE(out.contains("checkpoint")) << "nothing to go on from";
  EXPECT_EQ(out["rounds"][0]["server"], (Json{{"model", "coder"},
                                              {"prompt_tokens", 200},
                                              {"completion_tokens", 40},
                                              {"lost_tokens", 10},
                                              {"refused", 0}}));
  EXPECT_EQ(out["summary"]["server"]["prompt_tokens"], 400);
  EXPECT_EQ(out["summary"]["groups"]["train"]["novel"], 12) << "a server's program counts as a model's";
}

// What a round has found is what the next one is shown: evolution with fixed parameters.
TEST_F(PolicyTest, TheDatabaseEvolves) {
  workflow::ContrastiveSettings settings{.rounds = 3, .prompts = 2, .group = 2};
  settings.update = false;
  world.answer = [](const JobRequest& job, const Json& item) {
    return repeat(item, "ok " + std::to_string(2 + job.round) + ".00 round + r" + std::to_string(job.round));
  };
  world.drive(asked("contrastive", settings));
  EXPECT_EQ(world.job("1/generate").items[0]["prompt"].get<std::string>().find("round"), std::string::npos);
  EXPECT_NE(world.job("3/generate").items[0]["prompt"].get<std::string>().find("round + r"),
            std::string::npos);
}

TEST_F(PolicyTest, ARoundGetsWhatIsLeftOfTheBudget) {
  StageInputs inputs = asked("self_supervised", workflow::SelfSupervisedSettings{.rounds = 3, .samples = 2});
  inputs.spec.policy->budget = {.tokens = 600, .money = 1};
  inputs.spec.policy->prices = {.prompt = 1000, .completion = 10000};
  const StageOutput out = world.drive(inputs);
  std::vector<Json> left;
  for (const JobRequest& job : world.log)
    if (job.job == "generate") left.push_back(job.params["endpoint"]["budget"]);
  ASSERT_EQ(left.size(), 3u);
  EXPECT_EQ(left[0], (Json{{"tokens", 600}, {"money", 1.0}}));
  EXPECT_EQ(left[1]["tokens"], 360) << "two prompts took 120 each";
  EXPECT_NEAR(left[1]["money"].get<double>(), 0.4, 1e-12);
  EXPECT_EQ(left[2]["tokens"], 120);
  EXPECT_GT(left[2]["money"].get<double>(), 0) << "0 would be no bound";
  EXPECT_LT(left[2]["money"].get<double>(), 1e-9);
  EXPECT_EQ(world.count("train"), 0u);
  EXPECT_NEAR(out["summary"]["server"]["money"].get<double>(), 1.8, 1e-12);
}

TEST_F(PolicyTest, AMeasureStageNeedsNoCheckpoint) {
  const StageOutput out =
      world.drive(asked("measure", workflow::MeasureSettings{.samples = 2, .heldout = false}));
  EXPECT_EQ(world.jobs(), (std::vector<std::string>{"0/generate", "0/compile", "0/measure"}));
  EXPECT_EQ(out["samples"].size(), 4u);
  EXPECT_FALSE(out.contains("evaluated"));
  EXPECT_EQ(out["summary"]["server"]["lost_tokens"], 10);
}

// A server may refuse a prompt.
TEST_F(PolicyTest, WhatIsRefusedIsCounted) {
  world.answer = [](const JobRequest&, const Json& item) {
    return item["task"] == "a" ? repeat(item, "ok 3.00 own + o") : std::vector<std::string>{};
  };
  const StageOutput out =
      world.drive(asked("measure", workflow::MeasureSettings{.samples = 2, .heldout = false}));
  EXPECT_EQ(out["samples"].size(), 2u);
  EXPECT_EQ(out["summary"]["server"]["refused"], 2);
}

}  // namespace
}  // namespace warpsmith::stages
