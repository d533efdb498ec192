// `checker: {endpoint: …}`: a served model is asked about programs whose score jumped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warpsmith/workflow/hack_database.h"
#include "world.h"

namespace warpsmith::stages {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Strings = std::vector<std::string>;

struct CheckerTest : testing::Test {
  CheckerTest() {
    world.answer = [this](const JobRequest& job, const Json&) -> Strings {
      if (job.job == "check") return {opinion};
      return answers.at(static_cast<std::size_t>(job.round));
    };
    world.spent = Json{{"prompt", 100}, {"completion", 20}, {"lost", 0}};
  }
  static StageInputs rounds(int n) {
    workflow::ContrastiveSettings settings{.rounds = n, .prompts = 1, .group = 2};
    settings.update = false;
    StageInputs inputs = make_inputs("rl", "contrastive", std::move(settings));
    inputs.spec.dataset.train = {"a"};
    inputs.spec.policy = endpoint("coder");
    inputs.spec.checker = {.endpoint = endpoint("judge"), .hacks = "", .known = nullptr};
    add_upstream(inputs, "collect", output_with("collect", "a", {"ok 2.00 p", "hack clocks two + clocks"}));
    return inputs;
  }
  static workflow::EndpointSettings endpoint(const std::string& model) {
    workflow::EndpointSettings e;
    e.url = "http://localhost:8000/v1";
    e.model = model;
    return e;
  }
  Strings asked() const {
    Strings out;
    for (const JobRequest& job : world.log)
      for (const Json& item : job.items)
        if (job.job == "check")
          out.push_back(std::to_string(job.round) + " " + item["id"].get<std::string>());
    return out;
  }
  World world;
  std::map<std::size_t, Strings> answers;  // by round
  std::string opinion = "HACK\nIt keeps the answer.";
};

TEST_F(CheckerTest, IsAskedOnceAboutAJumpOverWhatWasBest) {
  answers = {{1, {"ok 3.90 little", "ok 4.10 jump"}},
             {2, {"ok 4.10 jump", "ok 8.00 again"}},  // the best before is 4.1 by now
             {3, {"ok 8.20 second", "wrong 99 w"}}};
  const StageOutput out = world.drive(rounds(3));
  EXPECT_EQ(asked(), (Strings{"1 " + program("a", "ok 4.10 jump").id}))
      << "twice 2.0 in round 1; less than twice 4.1, then 8.0, in rounds 2 and 3";
  ASSERT_EQ(out["opinions"].size(), 1u);
  const Json& one = out["opinions"][0];
  EXPECT_EQ(one["says"], "hack");
  EXPECT_EQ(one["reason"], "HACK It keeps the answer.");
  EXPECT_EQ(one["score"], 4.1);
  EXPECT_EQ(one["before"], 2.0);
  EXPECT_EQ(one["model"], "judge");
  EXPECT_EQ(one["task"], "a");
  EXPECT_EQ(out["summary"]["checker"]["asked"], 1);
  EXPECT_EQ(out["summary"]["checker"]["says"], (Json{{"hack", 1}}));
  EXPECT_EQ(out["summary"]["checker"]["prompt_tokens"], 100);
  EXPECT_EQ(out["summary"]["server"]["prompt_tokens"], 300) << "the policy's own";
}

TEST_F(CheckerTest, WhatItSaysIsNoVerdict) {
  answers = {{1, {"ok 9.00 fast", "ok 1.00 slow"}}};
  StageInputs inputs = rounds(1);
  const StageOutput with = world.drive(inputs);
  inputs.spec.checker.reset();
  World other;
  other.answer = world.answer;
  other.spent = world.spent;
  StageOutput without = other.drive(inputs);
  EXPECT_FALSE(without.contains("opinions"));
  for (const char* key : {"candidates", "samples"}) EXPECT_EQ(with[key], without[key]) << key;
  EXPECT_EQ(with["rounds"], without["rounds"]);
}

TEST_F(CheckerTest, AQuestionQuotesTheCasesMostAlikeOfTheDatabaseAndTheRun) {
  answers = {{1, {"ok 9.00 one + two * three - four", "hack late one + two * three - four / five"}}};
  StageInputs inputs = rounds(1);
  const Candidate old = program("b", "hack shapes x[1] [2] [3] ; y");
  inputs.spec.checker->known = std::make_shared<const workflow::HackDatabase>(
      workflow::HackDatabase{.cases = {*hack_case(old, fate(old))}, .digest = "d"});
  inputs.spec.checker->cases = 1;
  world.drive(inputs);
  const std::string prompt = world.job("1/check").items.at(0)["prompt"];
  EXPECT_THAT(prompt, HasSubstr("late: ")) << "found out in the same round";
  EXPECT_THAT(prompt, Not(HasSubstr("shapes: ")));
  EXPECT_THAT(prompt, Not(HasSubstr("clocks: ")));
  EXPECT_EQ(world.job("1/check").params["endpoint"]["model"], "judge");
  EXPECT_TRUE(world.job("1/check").one_shard);
}

TEST_F(CheckerTest, NoAnswerIsOne) {
  answers = {{1, {"ok 9.00 fast", "ok 1.00 slow"}}};
  const auto says = [&](const std::function<Strings()>& answer) {
    world.answer = [&](const JobRequest& job, const Json&) -> Strings {
      return job.job == "check" ? answer() : answers.at(1);
    };
    return world.drive(rounds(1))["opinions"][0]["says"].get<std::string>();
  };
  EXPECT_EQ(says([] { return Strings{}; }), "no answer");
  EXPECT_EQ(says([] { return Strings{"I would rather not say"}; }), "unclear");
}

TEST_F(CheckerTest, AMeasureStageAsksOfProgramsThatNoPersonOfTheDatasetWrote) {
  StageInputs inputs =
      make_inputs("m", "measure",
                  workflow::MeasureSettings{.candidates_of = {"collect"}, .select = "all", .heldout = false});
  inputs.spec.dataset.train = {"a"};
  inputs.spec.checker = {.endpoint = endpoint("judge"), .hacks = "", .known = nullptr};
  add_upstream(inputs, "collect", output_with("collect", "a", {"ok 5.00 person"}));
  add_upstream(inputs, "other", output_with("other", "a", {"ok 6.00 model", "ok 1.50 slow"}, "generated"));
  std::get<workflow::MeasureSettings>(inputs.spec.settings).candidates_of = {"collect", "other"};
  opinion = "HONEST. All is computed.";
  const StageOutput out = world.drive(inputs);
  EXPECT_EQ(asked(), (Strings{"0 " + program("a", "ok 6.00 model").id}));
  EXPECT_EQ(out["opinions"][0]["says"], "honest");
  EXPECT_EQ(out["opinions"][0]["before"], 1.0);
}

}  // namespace
}  // namespace warpsmith::stages
