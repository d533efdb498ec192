#include <gtest/gtest.h>

#include "world.h"

namespace warpsmith::stages {
namespace {

Json collected(const std::string& task, const std::vector<std::pair<std::string, std::string>>& programs) {
  Json record = {{"candidates", Json::array()}};
  for (const auto& [source, expected] : programs)
    record["candidates"].push_back(
        {{"candidate", to_json(program(task, source, expected.empty() ? "augmented" : "dataset"))},
         {"expected", expected}});
  return record;
}

TEST(Collect, CompilesAndMeasuresEveryDistinctCandidate) {
  StageInputs inputs = make_inputs(
      "collect", "collect",
      workflow::CollectSettings{{.variants = 2, .rename_identifiers = true, .block_sizes = {64}}, {}});
  World world;
  world.collected = [](const std::string& task) {
    if (task == "a")
      return collected(task, {{"ok 1.50 x", "ok"},
                              {"bad y", "compile_error"},
                              {"wrong z", "wrong_hidden"},
                              {"ok 2.00 v", ""},
                              {"ok 1.50 x", ""}});
    return collected(task, {{"ok 0.50 x", "ok"}, {"wrong surprise", "ok"}});
  };
  const StageOutput out = world.drive(inputs);
  EXPECT_EQ(world.jobs(), (std::vector<std::string>{"0/collect", "0/compile", "0/measure"}));

  const JobRequest& collect = world.job("0/collect");
  EXPECT_EQ(collect.program, "warpsmith-collect");
  EXPECT_EQ(collect.params.at("datasets"), "/data");
  EXPECT_EQ(collect.params.at("augment"),
            Json({{"variants", 2}, {"rename_identifiers", true}, {"block_sizes", {64}}}));
  EXPECT_EQ(Json(collect.items), Json::parse(R"([{"id":"a","augment":true},{"id":"b","augment":true},
                                                {"id":"c","augment":false},{"id":"d","augment":false}])"));
  EXPECT_EQ(world.count("compile"), 4u + 3 * 2);  // the repeated one of `a` once
  EXPECT_EQ(world.count("measure"), 9u);          // all but `bad`
  EXPECT_TRUE(world.job("0/measure").one_shard);
  EXPECT_EQ(world.job("0/measure").params.at("best"), Json::object());

  ASSERT_EQ(out.at("candidates").size(), 10u);
  const Json& bad = out["candidates"][1];
  EXPECT_EQ(bad["measurement"]["verdict"], "compile_error");
  EXPECT_EQ(bad["measurement"]["detail"], "kernel.cu:1: bad");
  EXPECT_EQ(bad["expected"], "compile_error");
  EXPECT_EQ(out["candidates"][0]["folder"], "stages/x/0/measure/0/1");
  const Json& summary = out["summary"];
  EXPECT_EQ(summary["samples"], 10);
  EXPECT_EQ(summary["ok"], 5);
  EXPECT_EQ(summary["verdicts"], Json({{"ok", 5}, {"compile_error", 1}, {"wrong_output", 4}}));
  EXPECT_EQ(summary["unexpected_verdicts"],
            3);  // "wrong surprise" of b, c and d; wrong_hidden is wrong_output
  EXPECT_DOUBLE_EQ(summary["groups"]["heldout_operation"]["best"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(summary["groups"]["train"]["best"].get<double>(), 2.0);
}

// A program that the twin cannot run lies in `unsupported`, and is right where a GPU can.
TEST(Collect, WhatSomeDevicesSupportMayBeRight) {
  StageInputs inputs = make_inputs("collect", "collect", workflow::CollectSettings{});
  World world;
  world.collected = [](const std::string& task) {
    return collected(task, {{"ok 0.50 x", "unsupported"}, {"wrong y", "unsupported"}});
  };
  EXPECT_EQ(world.drive(inputs)["summary"]["unexpected_verdicts"], 4);  // the wrong one of each task
}

TEST(Collect, ProgramsOfGroupSftOnlyAreNeitherCompiledNorMeasured) {
  StageInputs inputs = make_inputs("collect", "collect", workflow::CollectSettings{{.variants = 2}, {}});
  inputs.spec.dataset = {.folder = "/data", .train = {"a"}, .sft_only = {"b", "c"}};
  World world;
  world.collected = [](const std::string& task) {
    return collected(task, {{"ok 1.50 of " + task, "ok"}, {"bad of " + task, "compile_error"}});
  };
  const StageOutput out = world.drive(inputs);
  EXPECT_EQ(
      Json(world.job("0/collect").items),
      Json::parse(R"([{"id":"a","augment":true},{"id":"b","augment":false},{"id":"c","augment":false}])"));
  EXPECT_EQ(world.count("compile"), 2u);
  EXPECT_EQ(out["candidates"].size(), 2u);
  ASSERT_EQ(out["unmeasured"].size(), 2u) << "right ones alone";
  EXPECT_EQ(candidate_from_json(out["unmeasured"][1]).source(), "ok 1.50 of c\n");
  EXPECT_EQ(out["summary"]["sft_only"], Json({{"tasks", 2}, {"programs", 2}}));
  EXPECT_EQ(out["summary"]["samples"], 2);
}

TEST(Collect, TheTierThatAModelWritesIsWhatIsCollected) {
  for (const char* answer : {"plan", "extension", "python"}) {
    StageInputs inputs = make_inputs("collect", "collect", workflow::CollectSettings{});
    inputs.spec.prompt.answer = answer;
    World world;
    world.collected = [](const std::string& task) { return collected(task, {{"ok 1.00 y", "ok"}}); };
    world.drive(inputs);
    EXPECT_EQ(world.job("0/collect").params.value("tier", "plan"), answer);
  }
}

TEST(Collect, SpeedupsOfDegenerateTasksAreInNoFigureOfSpeedups) {
  StageInputs inputs = make_inputs("collect", "collect", workflow::CollectSettings{});
  inputs.tasks.front().degenerate = "a constant passes";
  World world;
  world.collected = [&](const std::string& task) {
    return collected(task, {{task == inputs.tasks.front().id ? "ok 9.00 x" : "ok 2.00 x", "ok"}});
  };
  const StageOutput out = world.drive(inputs);
  const Json& summary = out["summary"];
  EXPECT_EQ(summary["ok"], inputs.tasks.size());
  EXPECT_DOUBLE_EQ(summary["valid_share"].get<double>(), 1.0);
  EXPECT_DOUBLE_EQ(summary["best"].get<double>(), 2.0);
  EXPECT_EQ(summary["best_author"], "dataset");
  EXPECT_NEAR(summary["one_draw"].get<double>(), 2.0, 1e-12);
}

// No success and no failure: the device lacks something.
TEST(Collect, WhatADeviceLacksIsInNoShare) {
  const StageInputs inputs = make_inputs("collect", "collect", workflow::CollectSettings{});
  World world;
  world.collected = [](const std::string& task) {
    return collected(task, {{"unsupported x", "ok"}, {"ok 2.00 y", "ok"}});
  };
  const Json summary = world.drive(inputs)["summary"];
  EXPECT_DOUBLE_EQ(summary["valid_share"].get<double>(), 1.0);
  EXPECT_NEAR(summary["one_draw_unfloored"].get<double>(), 2.0, 1e-12);
}

TEST(Collect, LostItemsAreNotMeasured) {
  StageInputs inputs = make_inputs("collect", "collect", workflow::CollectSettings{});
  World world;
  world.collected = [](const std::string& task) {
    return collected(task, {{"lost x", "ok"}, {"ok 1.00 y", "ok"}});
  };
  world.lost = {"b"};
  const StageOutput out = world.drive(inputs);
  EXPECT_EQ(out["summary"]["lost_tasks"], 1);
  ASSERT_EQ(out["tasks"].size(), out["summary"]["tasks"].get<std::size_t>());
  EXPECT_FALSE(out["tasks"][0]["reference"].get<std::string>().empty());
  EXPECT_EQ(out["summary"]["verdicts"], Json({{"not_measured", 3}, {"ok", 3}}));
  EXPECT_DOUBLE_EQ(out["summary"]["valid_share"].get<double>(), 1.0);  // what is not known is in no share
  EXPECT_EQ(out["candidates"][0]["measurement"]["detail"], "lost with its shard: measure");
}

TEST(Collect, NothingToMeasureEndsTheStage) {
  World world;
  world.collected = [](const std::string& task) { return collected(task, {{"bad x", "compile_error"}}); };
  world.drive(make_inputs("collect", "collect", workflow::CollectSettings{}));
  EXPECT_EQ(world.jobs(), (std::vector<std::string>{"0/collect", "0/compile"}));
}

TEST(Collect, AnUnknownTaskIsAnError) {
  StageInputs inputs = make_inputs("collect", "collect", workflow::CollectSettings{});
  inputs.spec.dataset.train.push_back("nowhere");
  EXPECT_THROW(make_stage(inputs), Error);
}

TEST(Collect, AResultThatNobodyAskedForIsAnError) {
  auto stage = make_stage(make_inputs("collect", "collect", workflow::CollectSettings{}));
  stage->start();
  EXPECT_THROW(stage->on_job({0, "train", {}}), Error);
  EXPECT_THROW(stage->on_job({1, "collect", {}}), Error);
  EXPECT_THROW(stage->on_job({0, "compile", {{"unknown", Json::object(), ""}}}), Error);
}

TEST(MakeStage, UnknownKindIsAnError) {
  EXPECT_THROW(make_stage(make_inputs("x", "distil", workflow::CollectSettings{})), Error);
}

}  // namespace
}  // namespace warpsmith::stages
