#include <gtest/gtest.h>

#include <map>
#include <set>

#include "world.h"

namespace warpsmith::stages {
namespace {

StageInputs with_collect(workflow::SftSettings settings) {
  StageInputs inputs = make_inputs("sft", "sft", settings);
  StageOutput out = output_with("collect", "a", {"ok 1.00 p", "ok 2.00 q", "wrong r", "ok 3.00 s"});
  for (const char* task : {"b", "c"}) {
    const StageOutput more = output_with("collect", task, {"ok 1.25 p", "bad q"});
    for (const Json& entry : more["candidates"]) out["candidates"].push_back(entry);
  }
  add_upstream(inputs, "collect", out);
  return inputs;
}

std::string plain_prompt(const std::string& task) {
  return "Make it faster.\nReference:\nx[N] -> out[N]\ndef forward(x):\n  return f_" + task + "(x)\nCode:\n";
}

TEST(Sft, TrainsOnTheSuccessesOfTrainTasks) {
  World world;
  const StageOutput out = world.drive(with_collect({.steps = 3, .contrastive_share = 0}));
  ASSERT_EQ(world.jobs(), (std::vector<std::string>{"0/train"}));
  const JobRequest& train = world.log[0];
  EXPECT_EQ(train.program, "warpsmith-train");
  EXPECT_EQ(train.params["mode"], "sft");
  EXPECT_TRUE(train.params["init"].is_null());
  EXPECT_EQ(train.params["model"]["layers"], 4);
  EXPECT_EQ(train.params["checkpoint_prefix"], "checkpoints/sft");
  EXPECT_DOUBLE_EQ(train.params["optimizer"]["learning_rate"].get<double>(), 4e-3);
  EXPECT_EQ(ids_of(train.items), (std::vector<std::string>{"step-1", "step-2", "step-3"}));
  EXPECT_TRUE(train.one_shard);

  const auto examples = examples_of(train);
  ASSERT_EQ(examples.size(), 4u);  // three of a, one of b; c is held out
  EXPECT_EQ(examples[0]["id"], "sft/" + program("a", "ok 1.00 p").id);
  EXPECT_EQ(examples[0]["prompt"], plain_prompt("a"));
  EXPECT_EQ(examples[0]["completion"], "ok 1.00 p\n");
  EXPECT_EQ(examples[0]["weight"], 1.0);
  EXPECT_EQ(examples[3]["prompt"], plain_prompt("b"));
  EXPECT_EQ(examples[3]["completion"], "ok 1.25 p\n");

  EXPECT_EQ(out["checkpoint"], "checkpoints/sft-3");
  EXPECT_EQ(out["checkpoint_digest"], "digest of 3");
  EXPECT_EQ(out["step"], 3);
  EXPECT_EQ(out["summary"]["examples"], 4);
  EXPECT_EQ(out["summary"]["curve_tail"].size(), 3u);
}

// Programs that nobody measured, of tasks that are for stage 1 alone.
TEST(Sft, ProgramsOfGroupSftOnlyAreLearnedAsTheyAre) {
  StageInputs inputs = with_collect({.steps = 3, .contrastive_share = 0});
  inputs.spec.dataset.train = {"a"};
  inputs.spec.dataset.sft_only = {"b"};
  inputs.upstream["collect"]["unmeasured"] = {to_json(program("b", "straight on", "dataset"))};
  World world;
  world.drive(inputs);
  const auto examples = examples_of(world.log[0]);
  ASSERT_EQ(examples.size(), 4u);  // three successes of a; what was measured of b is not for training
  EXPECT_EQ(examples[3]["prompt"], plain_prompt("b"));
  EXPECT_EQ(examples[3]["completion"], "straight on\n");
}

TEST(Sft, ContrastiveExamplesOfUnmeasuredProgramsShowNoScore) {
  StageInputs inputs = with_collect({.steps = 3, .contrastive_share = 0.5});
  inputs.spec.dataset.train = {"a"};
  inputs.spec.dataset.sft_only = {"b", "c"};
  Json& unmeasured = inputs.upstream["collect"]["unmeasured"] = Json::array();
  for (const char* source : {"one", "two", "three"})
    unmeasured.push_back(to_json(program("b", source, "dataset")));
  unmeasured.push_back(to_json(program("c", "alone", "dataset")));
  World world;
  world.drive(inputs);
  std::map<std::string, int> count;
  std::set<std::string> answers;
  int others = 0, repeated = 0;
  for (const Json& e : examples_of(world.log[0])) {
    const std::string id = e["id"], prompt = e["prompt"];
    const std::string of = id.substr(0, id.find('#'));
    ++count[of];
    if (of != "contrastive/b") continue;
    answers.insert(e["completion"]);
    std::size_t shown = 0;
    for (std::size_t at = prompt.find("Earlier, not measured:\n"); at != std::string::npos;
         at = prompt.find("Earlier, not measured:\n", at + 1))
      ++shown;
    EXPECT_EQ(shown, 2u) << prompt;
    ++(prompt.find(":\n" + e["completion"].get<std::string>()) == std::string::npos ? others : repeated);
  }
  EXPECT_EQ(count["contrastive/c"], 0) << "one program has nothing to be compared with";
  EXPECT_EQ(count["contrastive/b"], 3 * count["contrastive/a"]);
  EXPECT_GT(count["contrastive/a"], 0);
  EXPECT_EQ(answers.size(), 3u);
  EXPECT_GT(others, 0);
  EXPECT_GT(repeated, 0) << "what is shown would be avoided";
}

TEST(Sft, AModelOfAFolderIsNamedAndExportedAtTheEnd) {
  StageInputs inputs = with_collect({.steps = 3, .contrastive_share = 0});
  workflow::PretrainedModel found;
  found.settings = {{"layers", 7}};
  found.frame = {{"before", "user: "}};
  inputs.spec.model.from = "/models/qwen";
  inputs.spec.model.pretrained = std::make_shared<const workflow::PretrainedModel>(found);
  World world;
  const StageOutput out = world.drive(inputs);
  ASSERT_EQ(world.jobs(), (std::vector<std::string>{"0/train", "0/export"}));
  const Json& pretrained = world.log[0].params["pretrained"];
  EXPECT_EQ(pretrained, (Json{{"folder", "/models/qwen"}, {"weights", true}, {"frame", found.frame}}));
  EXPECT_EQ(world.log[0].params["model"], found.settings);
  EXPECT_EQ(world.log[1].program, "warpsmith-train");
  EXPECT_EQ(world.log[1].params["mode"], "export");
  EXPECT_EQ(world.log[1].params["init"], "checkpoints/sft-3");
  EXPECT_EQ(world.log[1].params["type"], "float32");
  EXPECT_EQ(out["checkpoint"], "checkpoints/sft-3");

  inputs.spec.model.export_as = "none";
  World without;
  without.drive(inputs);
  EXPECT_EQ(without.jobs(), (std::vector<std::string>{"0/train"}));
}

TEST(Sft, AContrastiveShareShowsSlowerProgramsBeforeAFasterTarget) {
  World world;
  const StageOutput out = world.drive(with_collect({.steps = 1, .contrastive_share = 0.5}));
  const auto examples = examples_of(world.log[0]);
  std::set<std::string> ids;
  std::size_t contrastive = 0;
  for (const Json& e : examples) {
    EXPECT_TRUE(ids.insert(e["id"]).second) << e["id"];
    if (!e["id"].get<std::string>().starts_with("contrastive/")) continue;
    ++contrastive;
    // `b` has one success, so `a` alone: two exemplars and a target from three programs.
    EXPECT_EQ(e["prompt"],
              "Make it faster; compare the earlier ones.\n"
              "Reference:\nx[N] -> out[N]\ndef forward(x):\n  return f_a(x)\n"
              "Earlier, 1.00x:\nok 1.00 p\n"
              "Earlier, 2.00x:\nok 2.00 q\n"
              "Answer: code only.\nRules: same results, no caching.\nCode:\n");
    EXPECT_EQ(e["completion"], "ok 3.00 s\n");
  }
  EXPECT_EQ(contrastive, examples.size() / 2);
  EXPECT_EQ(examples.size(), 8u * 8);  // eight passes: few successes, many draws
  EXPECT_EQ(out["summary"]["contrastive_examples"], contrastive);
}

TEST(Sft, FewerProgramsThanExemplarsStillGiveAPair) {
  StageInputs inputs = make_inputs("sft", "sft", workflow::SftSettings{.steps = 1, .contrastive_share = 0.5});
  add_upstream(inputs, "collect", output_with("collect", "b", {"ok 2.00 p", "ok 1.00 q"}));
  World world;
  world.drive(inputs);
  const Json e = examples_of(world.log[0]).at(2);
  EXPECT_EQ(e["id"], "contrastive/b#0");
  EXPECT_NE(e["prompt"].get<std::string>().find("Earlier, 1.00x:\nok 1.00 q\nAnswer:"), std::string::npos);
  EXPECT_EQ(e["completion"], "ok 2.00 p\n");
}

TEST(Sft, OnRequestFailuresAreExamplesToo) {
  World world;
  world.drive(with_collect({.steps = 1, .contrastive_share = 0, .successes_only = false}));
  EXPECT_EQ(examples_of(world.log[0]).size(), 6u);
}

TEST(Sft, GoesOnFromACheckpointUpstream) {
  StageInputs inputs = with_collect({.steps = 2, .contrastive_share = 0});
  StageOutput pretrained = {{"stage", "pretrain"}, {"checkpoint", "checkpoints/pretrain-500"}};
  add_upstream(inputs, "pretrain", pretrained);
  World world;
  world.drive(inputs);
  EXPECT_EQ(world.log[0].params["init"], "checkpoints/pretrain-500");
  EXPECT_FALSE(world.log[0].params.contains("model"));
  EXPECT_EQ(ids_of(world.log[0].items), (std::vector<std::string>{"step-501", "step-502"}));
}

TEST(Sft, WithoutASuccessItFailsAndSaysSo) {
  StageInputs inputs = make_inputs("sft", "sft", workflow::SftSettings{});
  add_upstream(inputs, "collect", output_with("collect", "a", {"bad x"}));
  try {
    make_stage(inputs);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "stage sft: the stages that it needs hold no successful program of a train task");
  }
}

TEST(Sft, TrainingWithoutACheckpointIsAnError) {
  auto stage = make_stage(with_collect({.steps = 1, .contrastive_share = 0}));
  stage->start();
  EXPECT_THROW(stage->on_job({0, "train", {{"step-1", {{"step", 1}, {"loss", 2.0}}, ""}}}), Error);
}

}  // namespace
}  // namespace warpsmith::stages
