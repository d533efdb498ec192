// `ahead: 1`: the next round is sampled while one is measured and trained on.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "warpsmith/base/random.h"
#include "world.h"

namespace warpsmith::stages {
namespace {

using workflow::ContrastiveSettings;
using workflow::SelfSupervisedSettings;

// Programs that tell round and turn.
std::vector<std::string> answers_of_round(const JobRequest& job, const Json& item) {
  const std::string round = std::to_string(job.round);
  const std::string own = " own" + round + " + " + job.job + " " + item["id"].get<std::string>();
  std::vector<std::string> answers = {"ok 1." + round + "0" + own, "bad" + own, "ok 1.50 again" + own,
                                      "lost" + own};
  answers.resize(item["n"].get<std::size_t>());
  return answers;
}

StageInputs contrastive_ahead(ContrastiveSettings settings) {
  settings.ahead = 1;
  return with_model(std::move(settings), {"ok 1.00 p"});
}

StageInputs self_supervised_ahead(SelfSupervisedSettings settings) {
  settings.ahead = 1;
  StageInputs inputs = make_inputs("ssl", "self_supervised", settings);
  StageOutput sft = output_with("sft", "a", {"ok 1.00 p"});
  sft["checkpoint"] = "checkpoints/sft-40";
  add_upstream(inputs, "sft", sft);
  return inputs;
}

StageInputs served(StageInputs inputs, const std::string& weights) {
  inputs.spec.policy.emplace();
  inputs.spec.policy->url = "http://localhost:8000/v1";
  inputs.spec.policy->model = "coder";
  inputs.spec.policy->budget = {.tokens = 100000};
  inputs.spec.policy_weights = weights;
  return inputs;
}

TEST(Ahead, ARoundIsDrawnByTheNewestPolicyWhileTheOneBeforeIsAtWork) {
  World world;
  world.answer = answers_of_round;
  const StageOutput out =
      world.drive(contrastive_ahead({.rounds = 3, .prompts = 1, .group = 3, .epochs = 1}));
  EXPECT_EQ(world.jobs(), (std::vector<std::string>{"1/generate", "1/compile", "2/generate", "1/measure",
                                                    "1/train", "2/compile", "3/generate", "2/measure",
                                                    "2/train", "3/compile", "3/measure", "3/train"}));
  const auto params = [&](const std::string& job) { return world.job(job).params; };
  const Json first = out["rounds"][0]["checkpoint"], second = out["rounds"][1]["checkpoint"];
  EXPECT_EQ(params("1/generate")["checkpoint"], "checkpoints/ssl-200");
  EXPECT_EQ(params("2/generate")["checkpoint"], "checkpoints/ssl-200");
  EXPECT_EQ(params("3/generate")["checkpoint"], first);
  // Ratios are over the policy that drew the samples, which is not the one that is trained on.
  EXPECT_FALSE(params("1/train").contains("sampled_by"));
  EXPECT_EQ(params("2/train")["init"], first);
  EXPECT_EQ(params("2/train")["sampled_by"], "checkpoints/ssl-200");
  EXPECT_EQ(params("3/train")["init"], second);
  EXPECT_EQ(params("3/train")["sampled_by"], first);
  const auto prompt = [&](const std::string& job) { return world.job(job).items[0]["prompt"].dump(); };
  EXPECT_EQ(prompt("2/generate").find("own1"), std::string::npos) << "round 1 is not known yet";
  EXPECT_NE(prompt("3/generate").find("own1"), std::string::npos);
  EXPECT_EQ(prompt("3/generate").find("own2"), std::string::npos);
  ASSERT_EQ(out["samples"].size(), 9u);
  for (const Json& s : out["samples"]) EXPECT_EQ(s.value("behind", 0), s["round"] == 1 ? 0 : 1) << s;
}

TEST(Ahead, OneAfterTheOtherLeavesNoTrace) {
  World world;
  world.answer = answers_of_round;
  const StageOutput out = world.drive(with_model({.rounds = 2, .prompts = 1, .group = 3, .epochs = 1}));
  EXPECT_EQ(world.jobs(), (std::vector<std::string>{"1/generate", "1/compile", "1/measure", "1/train",
                                                    "2/generate", "2/compile", "2/measure", "2/train"}));
  for (const JobRequest& job : world.log) EXPECT_FALSE(job.params.contains("sampled_by"));
  EXPECT_EQ(out.dump().find("behind"), std::string::npos);
}

TEST(Ahead, APolicyThatDidNotLearnIsNotBehind) {
  World world;
  world.answer = [](const JobRequest&, const Json& item) { return repeat(item, "bad x"); };
  const StageOutput out = world.drive(contrastive_ahead({.rounds = 3, .prompts = 1, .group = 2}));
  EXPECT_EQ(world.count("train"), 0u);
  EXPECT_EQ(world.count("compile"), 1u) << "there is nothing new to measure in the rounds behind";
  EXPECT_EQ(out["samples"].size(), 6u);
  EXPECT_EQ(out.dump().find("behind"), std::string::npos);
}

TEST(Ahead, ProgressSaysWhichRoundIsSampledAhead) {
  World world;
  world.answer = answers_of_round;
  const auto stage = make_stage(contrastive_ahead({.rounds = 2, .prompts = 1, .group = 2, .epochs = 1}));
  StageStep step = stage->start();
  EXPECT_FALSE(step.progress.contains("ahead"));
  const JobResult first = world.run(step.jobs.at(0));
  step = stage->on_job(first);
  EXPECT_EQ(step.progress["round"], 1);
  EXPECT_EQ(step.progress["ahead"], 2);
  ASSERT_EQ(step.jobs.size(), 2u);
  const JobResult ahead = world.run(step.jobs[1]);
  step = stage->on_job(ahead);
  EXPECT_TRUE(step.jobs.empty()) << "it waits for its round";
  EXPECT_THROW(stage->on_job(ahead), Error);
}

// What was asked for in a stage's life, without the order, and its output.
struct Course {
  std::multiset<std::string> asked;
  std::string output;
  bool operator==(const Course&) const = default;
};

Course course_of(const StageInputs& inputs, bool of_server, std::function<std::size_t(std::size_t)> next) {
  World world;
  world.answer = answers_of_round;
  if (of_server) world.spent = Json{{"prompt", 100}, {"completion", 20}, {"lost", 5}};
  world.next = std::move(next);
  const StageOutput out = world.drive(inputs);
  Course course{{}, out.dump()};
  for (const JobRequest& job : world.log) course.asked.insert(dump(job));
  return course;
}

TEST(Ahead, TheOrderInWhichJobsEndDecidesNothing) {
  ContrastiveSettings several{.rounds = 4, .prompts = 2, .group = 4, .turns = 3, .epochs = 1};
  several.exemplars = workflow::Exemplars::kIsland;
  several.island_reset_every = 1;
  ContrastiveSettings fixed{.rounds = 4, .prompts = 2, .group = 3};
  fixed.update = false;
  const ContrastiveSettings one{.rounds = 4, .prompts = 2, .group = 3, .epochs = 1};
  const SelfSupervisedSettings own{.rounds = 4, .samples = 3, .steps = 2, .replay = 0};
  struct Case {
    const char* name;
    StageInputs inputs;
    bool of_server;
  };
  const std::vector<Case> cases = {{"turns", contrastive_ahead(several), false},
                                   {"fixed weights", contrastive_ahead(fixed), false},
                                   {"self-supervised", self_supervised_ahead(own), false},
                                   {"a server's model", served(contrastive_ahead(fixed), "none"), true},
                                   {"trained on a server", served(contrastive_ahead(one), "sglang"), true}};
  for (const Case& c : cases) {
    const Course first = course_of(c.inputs, c.of_server, {});
    EXPECT_TRUE(first == course_of(c.inputs, c.of_server, [](std::size_t open) { return open - 1; }))
        << c.name << ": the newest first";
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      Random random(seed);
      EXPECT_TRUE(first ==
                  course_of(c.inputs, c.of_server, [&](std::size_t open) { return random.below(open); }))
          << c.name << ", order " << seed;
    }
  }
}

// The server's weights are those of the round that it is asked for, whatever was trained meanwhile.
TEST(Ahead, AServerGetsTheWeightsOfTheRoundThatItIsAskedFor) {
  World world;
  world.answer = answers_of_round;
  world.spent = Json{{"prompt", 100}, {"completion", 20}};
  const StageOutput out =
      world.drive(served(contrastive_ahead({.rounds = 3, .prompts = 1, .group = 3, .epochs = 1}), "sglang"));
  EXPECT_EQ(world.count("weights"), 2u) << "rounds 1 and 2 are drawn by the same";
  EXPECT_EQ(world.job("3/weights").params["init"], out["rounds"][0]["checkpoint"]);
  const auto version = [&](const std::string& job) {
    return world.job(job).params["endpoint"]["weights"]["version"].get<std::string>();
  };
  EXPECT_EQ(version("1/generate"), version("2/generate"));
  EXPECT_EQ("checkpoints/" + version("3/generate").substr(0, version("3/generate").rfind('-')),
            out["rounds"][0]["checkpoint"]);
  EXPECT_EQ(world.job("3/generate").params["endpoint"]["budget"]["tokens"], 100000 - 240);
  EXPECT_EQ(world.job("3/train").params["sampled_by"], out["rounds"][0]["checkpoint"]);
}

}  // namespace
}  // namespace warpsmith::stages
