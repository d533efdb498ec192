// `skip`: programs that are predicted to be slow are not measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "world.h"

namespace warpsmith::stages {
namespace {

using ::testing::HasSubstr;

// A program with as many loops.
std::string looped(const std::string& fate, int loops, int number) {
  std::string source = fate + " p" + std::to_string(number);
  for (int i = 0; i < loops; ++i) source += " for";
  return source;
}
// What is known: a loop costs 0.2.
std::string usual(int loops, int number) {
  return looped("ok " + std::to_string(2.0 - 0.2 * loops), loops, number);
}
std::vector<std::string> known_programs(int n) {
  std::vector<std::string> sources;
  for (int i = 0; i < n; ++i) sources.push_back(usual(i % 8, 1000 + i));
  return sources;
}

StageInputs with_known(workflow::ContrastiveSettings settings, const std::vector<std::string>& programs) {
  settings.prompts = 1;
  return with_model(std::move(settings), programs);
}

// Answers of a round: 0 to 9 loops in turn. From `slow` loops on they have that fate, which is as long as
// "ok 1.000000".
auto answers(int slow = 100, const std::string& fate = "") {
  return [=](const JobRequest& job, const Json& item) {
    std::vector<std::string> out;
    for (int i = 0; i < item.at("n").get<int>(); ++i)
      out.push_back(i % 10 < slow ? usual(i % 10, 100 * job.round + i)
                                  : looped(fate, i % 10, 100 * job.round + i));
    return out;
  };
}

long loops_of(const Json& item) {
  const std::string source = candidate_from_json(item.at("candidate")).source();
  long loops = 0;
  for (std::size_t at = source.find(" for"); at != std::string::npos; at = source.find(" for", at + 1))
    ++loops;
  return loops;
}
std::set<std::string> id_set(const std::vector<Json>& items) {
  const std::vector<std::string> ids = ids_of(items);
  return {ids.begin(), ids.end()};
}

TEST(Skip, TheSlowestAreNotMeasuredButABlindShare) {
  World world;
  world.answer = answers();
  const StageOutput out =
      world.drive(with_known({.rounds = 1, .group = 40, .skip = 0.5}, known_programs(32)));
  EXPECT_EQ(world.job("1/compile").items.size(), 40u);
  EXPECT_EQ(world.job("1/measure").items.size(), 22u) << "the faster half, and a tenth of the others";
  const Json& skip = out["rounds"][0]["skip"];
  EXPECT_EQ(skip["learned_from"], 32);
  EXPECT_EQ(skip["guessed"], 40);
  EXPECT_EQ(skip["skipped"], 18);
  EXPECT_EQ(skip["blind"], 2);
  EXPECT_EQ(skip["right"], 22);
  EXPECT_EQ(skip["blind_right"], 2);
  EXPECT_EQ(skip["lost"], 0);
  EXPECT_EQ(skip["lost_share"], 0.0);
  EXPECT_GT(skip["rank_correlation"].get<double>(), 0.9);
  EXPECT_FALSE(skip.contains("blind_rank_correlation")) << "of two there is none";
  EXPECT_FALSE(skip.contains("note"));

  std::size_t fast = 0;
  for (const Json& item : world.job("1/measure").items) fast += loops_of(item) < 5 ? 1 : 0;
  EXPECT_EQ(fast, 20u);
  std::size_t skipped = 0;
  for (const Json& sample : out["samples"]) {
    if (sample["verdict"] != "not_measured") continue;
    ++skipped;
    EXPECT_FALSE(sample.contains("reward"));
    EXPECT_FALSE(sample.contains("advantage"));
  }
  EXPECT_EQ(skipped, 18u);
  EXPECT_EQ(examples_of(world.job("1/train")).size(), 22u);
  std::size_t told = 0;
  for (const Json& candidate : out["candidates"])
    told += candidate["measurement"]["detail"] == "skipped: predicted to be slow" ? 1 : 0;
  EXPECT_EQ(told, 18u);
  EXPECT_EQ(out["summary"]["skip"]["skipped"], 18);
  EXPECT_EQ(out["summary"]["skip"]["rounds"][0]["round"], 1);
}

TEST(Skip, WithoutItNothingChanges) {
  World world;
  world.answer = answers();
  const StageOutput out = world.drive(with_known({.rounds = 1, .group = 40}, known_programs(32)));
  EXPECT_EQ(world.job("1/measure").items.size(), 40u);
  EXPECT_FALSE(out["rounds"][0].contains("skip"));
  EXPECT_FALSE(out["summary"].contains("skip"));
}

TEST(Skip, OfFewMeasuredProgramsNothingIsLearned) {
  World world;
  world.answer = answers();
  std::vector<std::string> known = known_programs(29);
  known.push_back("wrong x for");  // not a right one
  const StageOutput out = world.drive(with_known({.rounds = 2, .group = 10, .skip = 0.3}, known));
  EXPECT_EQ(world.job("1/measure").items.size(), 10u);
  const Json& skip = out["rounds"][0]["skip"];
  EXPECT_EQ(skip["guessed"], 0);
  EXPECT_EQ(skip["skipped"], 0);
  EXPECT_FALSE(skip.contains("rank_correlation"));
  EXPECT_THAT(skip["note"].get<std::string>(), HasSubstr("29 right programs are measured, fewer than 30"));
  // Those of the first round are known in the second.
  EXPECT_EQ(world.job("2/measure").items.size(), 8u);
  EXPECT_EQ(out["rounds"][1]["skip"]["learned_from"], 39);
  EXPECT_FALSE(out["rounds"][1]["skip"].contains("note"));
  EXPECT_EQ(out["summary"]["skip"]["skipped"], 2);
  EXPECT_EQ(out["summary"]["skip"]["rounds"].size(), 2u);
}

TEST(Skip, OneAtLeastIsMeasuredBlindly) {
  World world;
  world.answer = answers();
  const StageOutput out =
      world.drive(with_known({.rounds = 1, .group = 10, .skip = 0.1}, known_programs(32)));
  EXPECT_EQ(world.job("1/measure").items.size(), 10u);
  EXPECT_EQ(out["rounds"][0]["skip"]["blind"], 1);
  EXPECT_EQ(out["rounds"][0]["skip"]["skipped"], 0);
}

TEST(Skip, TheSeedDrawsTheBlindOnes) {
  const auto measured = [](std::uint64_t seed) {
    StageInputs inputs = with_known({.rounds = 1, .group = 40, .skip = 0.5}, known_programs(32));
    inputs.spec.seed = seed;
    World world;
    world.answer = answers();
    world.drive(inputs);
    return id_set(world.job("1/measure").items);
  };
  const auto a = measured(7), b = measured(8);
  EXPECT_EQ(a, measured(7));
  EXPECT_EQ(a.size(), b.size());
  EXPECT_NE(a, b);
}

// What seemed to be slow was the fastest.
TEST(Skip, WhatItWouldHaveLostIsTold) {
  World world;
  world.answer = answers(5, "ok 9.000000");
  const StageOutput out =
      world.drive(with_known({.rounds = 1, .group = 40, .skip = 0.5}, known_programs(32)));
  const Json& skip = out["rounds"][0]["skip"];
  EXPECT_EQ(skip["blind"], 2);
  EXPECT_EQ(skip["lost"], 2);
  EXPECT_EQ(skip["lost_share"], 1.0);
  EXPECT_LT(skip["rank_correlation"].get<double>(), 0.9);
}

TEST(Skip, WrongBlindOnesWouldNotHaveBeenLost) {
  World world;
  world.answer = answers(5, "wrong 00000");
  const StageOutput out =
      world.drive(with_known({.rounds = 1, .group = 40, .skip = 0.5}, known_programs(32)));
  const Json& skip = out["rounds"][0]["skip"];
  EXPECT_EQ(skip["blind"], 2);
  EXPECT_EQ(skip["blind_right"], 0);
  EXPECT_EQ(skip["right"], 20);
  EXPECT_EQ(skip["lost_share"], 0.0);
}

TEST(Skip, BlindOnesThatWereLostWithTheirShardSayNothing) {
  World world;
  world.answer = answers(5, "lost 000000");
  const StageOutput out =
      world.drive(with_known({.rounds = 1, .group = 40, .skip = 0.5}, known_programs(32)));
  EXPECT_EQ(out["rounds"][0]["skip"]["blind"], 2);
  EXPECT_FALSE(out["rounds"][0]["skip"].contains("lost_share"));
}

// Unlike one that was lost, which is.
TEST(Skip, WhatWasSkippedIsNotTriedAgain) {
  World world;
  const auto first = answers();
  world.answer = [&](const JobRequest& job, const Json& item) {
    JobRequest same = job;
    same.round = 1;
    std::vector<std::string> out = first(same, item);
    out[0] = "lost x";
    return out;
  };
  const StageOutput out =
      world.drive(with_known({.rounds = 2, .group = 40, .skip = 0.5}, known_programs(32)));
  EXPECT_EQ(world.job("1/compile").items.size(), 40u);
  ASSERT_EQ(world.job("2/compile").items.size(), 1u);
  EXPECT_EQ(loops_of(world.job("2/compile").items[0]), 0);
  EXPECT_EQ(out["rounds"][1]["verdicts"]["not_measured"], out["rounds"][0]["verdicts"]["not_measured"]);
}

TEST(Skip, WhatWasSkippedIsNotAskedForAnotherTurn) {
  World world;
  world.answer = answers();
  world.drive(with_known({.rounds = 1, .group = 40, .turns = 2, .skip = 0.5}, known_programs(32)));
  EXPECT_EQ(world.job("1/generate-2").items.size(), 22u);
}

// The task's median is what a prediction is relative to.
TEST(Skip, ProgramsOfATaskWithoutARightOneAreAllMeasured) {
  StageInputs inputs = with_known({.rounds = 1, .group = 20, .skip = 0.5}, known_programs(32));
  std::get<workflow::ContrastiveSettings>(inputs.spec.settings).prompts = 2;
  inputs.spec.dataset.train = {"a", "b"};
  World world;
  world.answer = answers();
  const StageOutput out = world.drive(inputs);
  EXPECT_EQ(out["rounds"][0]["skip"]["guessed"], 20);
  std::size_t of_b = 0;
  for (const Json& item : world.job("1/measure").items)
    of_b += candidate_from_json(item["candidate"]).task == "b" ? 1 : 0;
  EXPECT_EQ(of_b, 20u);
  EXPECT_EQ(world.job("1/measure").items.size(), 31u);
}

TEST(Skip, WhatCannotBeToldApartIsMeasured) {
  World world;
  world.answer = [](const JobRequest&, const Json& item) {
    std::vector<std::string> out;
    for (int i = 0; i < item.at("n").get<int>(); ++i) out.push_back(usual(2, 100 + i));
    return out;
  };
  const StageOutput out =
      world.drive(with_known({.rounds = 1, .group = 20, .skip = 0.5}, known_programs(32)));
  EXPECT_EQ(world.job("1/measure").items.size(), 20u);
  EXPECT_THAT(out["rounds"][0]["skip"]["note"].get<std::string>(), HasSubstr("equally fast"));
}

// All else is equal.
TEST(Skip, WhatTheCompilerSaysCounts) {
  const auto with_registers = [](int n, int number) {
    return "ok " + std::to_string(2.0 - n / 200.0) + " p" + std::to_string(number) +
           " registers=" + std::to_string(n);
  };
  std::vector<std::string> known;
  for (int i = 0; i < 40; ++i) known.push_back(with_registers(100 + 10 * (i % 8), 100 + i));
  World world;
  world.answer = [&](const JobRequest&, const Json& item) {
    std::vector<std::string> out;
    for (int i = 0; i < item.at("n").get<int>(); ++i)
      out.push_back(with_registers(i % 2 ? 170 : 100, 300 + i));
    return out;
  };
  world.drive(with_known({.rounds = 1, .group = 20, .skip = 0.5}, known));
  std::size_t lean = 0;
  for (const Json& item : world.job("1/measure").items)
    lean +=
        candidate_from_json(item["candidate"]).source().find("registers=100") != std::string::npos ? 1 : 0;
  EXPECT_EQ(lean, 10u);
  EXPECT_EQ(world.job("1/measure").items.size(), 11u);
}

TEST(Skip, AStageThatIsToldTheSameSkipsTheSame) {
  const StageInputs inputs =
      with_known({.rounds = 3, .group = 20, .turns = 2, .skip = 0.4}, known_programs(32));
  World world;
  world.answer = answers();
  std::vector<std::string> asked;
  std::vector<JobResult> told;
  const auto stage = make_stage(inputs);
  StageStep step = stage->start();
  while (!step.finished) {
    ASSERT_EQ(step.jobs.size(), 1u);
    asked.push_back(dump(step.jobs[0]));
    told.push_back(world.run(step.jobs[0]));
    step = stage->on_job(told.back());
  }
  const std::string output = step.output.dump();
  EXPECT_GT(step.output["summary"]["skip"]["skipped"].get<int>(), 0);
  const auto again = make_stage(inputs);
  step = again->start();
  for (std::size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(dump(step.jobs.at(0)), asked[i]) << i;
    step = again->on_job(told[i]);
  }
  EXPECT_EQ(step.output.dump(), output);
}

TEST(Skip, StageTwoSkipsToo) {
  StageInputs inputs =
      make_inputs("ssl", "self_supervised",
                  workflow::SelfSupervisedSettings{.rounds = 1, .samples = 16, .replay = 0, .skip = 0.5});
  inputs.spec.dataset.train = {"a"};
  add_upstream(inputs, "collect", output_with("collect", "a", known_programs(32)));
  StageOutput sft = output_with("sft", "a", {});
  sft["checkpoint"] = "checkpoints/sft-100";
  add_upstream(inputs, "sft", sft);
  World world;
  world.answer = answers();
  const StageOutput out = world.drive(inputs);
  EXPECT_EQ(world.job("1/measure").items.size(), 9u);
  EXPECT_EQ(examples_of(world.job("1/train")).size(), 9u);
  EXPECT_EQ(out["rounds"][0]["skip"]["skipped"], 7);
}

}  // namespace
}  // namespace warpsmith::stages
