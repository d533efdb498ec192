#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "world.h"

namespace warpsmith::stages {
namespace {

StageInputs with_sft(workflow::SelfSupervisedSettings settings) {
  StageInputs inputs = make_inputs("ssl", "self_supervised", settings);
  add_upstream(inputs, "collect", output_with("collect", "a", {"ok 1.00 p", "ok 2.00 q", "bad r"}));
  StageOutput sft = output_with("sft", "a", {});
  sft["checkpoint"] = "checkpoints/sft-100";
  sft["examples"] = {{"from", {"collect"}},      {"style", "compact"},     {"exemplars", 2},
                     {"contrastive_share", 0.0}, {"successes_only", true}, {"key", 5}};
  add_upstream(inputs, "sft", sft);
  return inputs;
}

std::vector<std::string> completions(const std::vector<Json>& examples) {
  std::vector<std::string> out;
  for (const Json& e : examples) out.push_back(e["completion"]);
  return out;
}

TEST(SelfSupervised, ARoundSamplesTestsAndTrains) {
  StageInputs inputs = with_sft({.rounds = 1, .samples = 4, .steps = 2, .distinct = true, .replay = 0});
  World world;
  world.answer = [](const JobRequest&, const Json& item) -> std::vector<std::string> {
    if (item["task"] == "a") return {"ok 1.00 p", "ok 1.50 new\n", "ok 1.50 new", "bad x"};
    return {"bad r", "wrong y", "lost z", "unsupported u"};
  };
  const StageOutput out = world.drive(inputs);
  EXPECT_EQ(world.jobs(), (std::vector<std::string>{"1/generate", "1/compile", "1/measure", "1/train"}));

  const JobRequest& generate = world.job("1/generate");
  EXPECT_EQ(generate.params["checkpoint"], "checkpoints/sft-100");
  EXPECT_EQ(ids_of(generate.items), (std::vector<std::string>{"a#0", "b#0"}));  // train tasks only
  EXPECT_EQ(generate.items[0]["n"], 4);
  EXPECT_EQ(generate.items[0]["prompt"],
            "Make it faster.\nReference:\nx[N] -> out[N]\ndef forward(x):\n  return f_a(x)\nCode:\n");

  // "ok 1.00 p" is known from upstream; "bad r" only of another task; the new one is asked for once.
  EXPECT_EQ(ids_of(world.job("1/compile").items),
            (std::vector<std::string>{program("a", "ok 1.50 new").id, program("a", "bad x").id,
                                      program("b", "bad r").id, program("b", "wrong y").id,
                                      program("b", "lost z").id, program("b", "unsupported u").id}));
  EXPECT_EQ(ids_of(world.job("1/measure").items),
            (std::vector<std::string>{program("a", "ok 1.50 new").id, program("b", "wrong y").id,
                                      program("b", "lost z").id}));
  EXPECT_EQ(world.job("1/measure").params["best"], Json({{"a", 2.0}}));

  const JobRequest& train = world.job("1/train");
  EXPECT_EQ(train.params["mode"], "rejection");
  EXPECT_EQ(train.params["init"], "checkpoints/sft-100");
  EXPECT_EQ(ids_of(train.items), (std::vector<std::string>{"step-101", "step-102"}));
  EXPECT_EQ(completions(examples_of(train)), (std::vector<std::string>{"ok 1.00 p\n", "ok 1.50 new\n"}));

  EXPECT_EQ(out["checkpoint"], "checkpoints/ssl-102");
  ASSERT_EQ(out["samples"].size(), 8u);
  EXPECT_EQ(out["samples"][2]["verdict"], "ok");  // duplicates share the verdict
  EXPECT_DOUBLE_EQ(out["samples"][2]["speedup"].get<double>(), 1.5);
  EXPECT_EQ(out["samples"][6]["verdict"], "not_measured");
  EXPECT_FALSE(out["samples"][6].contains("speedup"));
  EXPECT_EQ(out["candidates"].size(), 7u);
  EXPECT_EQ(out["candidates"][0]["known_from"], "collect");
  const Json& summary = out["summary"];
  EXPECT_EQ(
      summary["verdicts"],
      Json({{"ok", 3}, {"compile_error", 2}, {"wrong_output", 1}, {"not_measured", 1}, {"unsupported", 1}}));
  EXPECT_DOUBLE_EQ(summary["valid_share"].get<double>(), 3.0 / 6) << "what the device lacks is no failure";
  EXPECT_DOUBLE_EQ(summary["distinct_share"].get<double>(), 7.0 / 8);
  EXPECT_NEAR(summary["one_draw"].get<double>(), std::pow(1.5 * 1.5, 1.0 / 6), 1e-12);
  EXPECT_NEAR(summary["one_draw_unfloored"].get<double>(), std::pow(1.5 * 1.5 * 1e-6, 1.0 / 6), 1e-12);
}

TEST(SelfSupervised, NothingIsTestedTwiceOverTheRounds) {
  StageInputs inputs = with_sft({.rounds = 3, .samples = 2, .steps = 1, .replay = 0});
  World world;
  world.answer = [](const JobRequest& job, const Json&) -> std::vector<std::string> {
    return {"ok 1.50 same", "ok 1.00 round" + std::to_string(job.round)};
  };
  world.drive(inputs);
  EXPECT_EQ(world.count("compile"), 8u);  // `same` of a and b once; one new of each in each round
  EXPECT_EQ(world.count("measure"), 8u);
  // Each distinct success once over all rounds, and each round from the checkpoint of the one before.
  EXPECT_EQ(completions(examples_of(world.job("1/train"))).size(), 4u);
  EXPECT_EQ(completions(examples_of(world.job("2/train"))),
            (std::vector<std::string>{"ok 1.00 round2\n", "ok 1.00 round2\n"}));
  EXPECT_EQ(world.job("2/generate").params["checkpoint"], "checkpoints/ssl-101");
  EXPECT_EQ(world.job("3/train").params["init"], "checkpoints/ssl-102");
}

TEST(SelfSupervised, ThePapersLiteralFormTrainsOnEverySuccess) {
  StageInputs inputs = with_sft({.rounds = 2, .samples = 2, .steps = 1, .distinct = false, .replay = 0});
  World world;
  world.answer = [](const JobRequest&, const Json&) -> std::vector<std::string> {
    return {"ok 1.50 s", "ok 1.50 s"};
  };
  world.drive(inputs);
  EXPECT_EQ(examples_of(world.job("1/train")).size(), 4u);
  EXPECT_EQ(examples_of(world.job("2/train")).size(), 4u);
}

TEST(SelfSupervised, OfEachTaskTheFastestShareIsLearned) {
  StageInputs inputs = with_sft({.rounds = 1, .samples = 4, .steps = 1, .fastest = 0.5, .replay = 0});
  World world;
  world.answer = [](const JobRequest&, const Json& item) -> std::vector<std::string> {
    if (item["task"] == "a") return {"ok 1.10 s", "ok 1.70 t", "ok 1.20 u", "bad x"};
    return {"bad x", "ok 0.10 only", "bad y", "bad z"};
  };
  world.drive(inputs);
  // Half of three is two, in the order in which they were drawn; of one it is that one, however slow.
  EXPECT_EQ(completions(examples_of(world.job("1/train"))),
            (std::vector<std::string>{"ok 1.70 t\n", "ok 1.20 u\n", "ok 0.10 only\n"}));
}

TEST(SelfSupervised, ReplayIsAShareOfTheExamples) {
  StageInputs inputs = with_sft({.rounds = 1, .samples = 3, .steps = 1, .replay = 0.5});
  World world;
  world.answer = [](const JobRequest&, const Json&) -> std::vector<std::string> {
    return {"ok 1.50 s", "ok 1.60 t", "ok 1.70 u"};
  };
  const StageOutput out = world.drive(inputs);
  const auto examples = examples_of(world.job("1/train"));
  ASSERT_EQ(examples.size(), 12u);  // six successes, six replayed from stage 1's two examples
  EXPECT_EQ(std::count_if(examples.begin(), examples.end(),
                          [](const Json& e) { return e["completion"] == "ok 2.00 q\n"; }),
            3);
  const auto ids = ids_of(examples);
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size());
  EXPECT_EQ(out["rounds"][0]["examples"], 6);
  EXPECT_EQ(out["rounds"][0]["replayed"], 6);
}

TEST(SelfSupervised, ARoundWithoutSuccessTrainsOnReplayAndSaysSo) {
  StageInputs inputs = with_sft({.rounds = 2, .samples = 1, .steps = 1, .replay = 0.5});
  World world;
  world.answer = [](const JobRequest&, const Json&) -> std::vector<std::string> { return {"bad x"}; };
  const StageOutput out = world.drive(inputs);
  EXPECT_EQ(world.jobs(),
            (std::vector<std::string>{"1/generate", "1/compile", "1/train", "2/generate", "2/train"}));
  EXPECT_EQ(completions(examples_of(world.job("1/train"))),
            (std::vector<std::string>{"ok 1.00 p\n", "ok 2.00 q\n"}));
  EXPECT_EQ(out["rounds"][0]["note"], "no new success in this round: trained on stage 1's examples only");
  EXPECT_EQ(out["summary"]["rounds_without_success"], 2);
  EXPECT_FALSE(out["summary"].contains("best"));
}

TEST(SelfSupervised, WithoutSuccessAndReplayTheModelStays) {
  StageInputs inputs = with_sft({.rounds = 1, .samples = 1, .steps = 1, .replay = 0});
  World world;
  world.answer = [](const JobRequest&, const Json&) -> std::vector<std::string> { return {"bad x"}; };
  const StageOutput out = world.drive(inputs);
  EXPECT_EQ(world.jobs(), (std::vector<std::string>{"1/generate", "1/compile"}));
  EXPECT_EQ(out["checkpoint"], "checkpoints/sft-100");
}

TEST(SelfSupervised, ManySamplesAreSplitOverPrompts) {
  StageInputs inputs = with_sft({.rounds = 1, .samples = 40, .steps = 1, .replay = 0});
  World world;
  world.answer = [](const JobRequest&, const Json& item) {
    return std::vector<std::string>(item["n"].get<std::size_t>(), "bad x");
  };
  world.drive(inputs);
  const JobRequest& job = world.job("1/generate");
  EXPECT_EQ(ids_of(job.items), (std::vector<std::string>{"a#0", "a#1", "a#2", "b#0", "b#1", "b#2"}));
  EXPECT_EQ(job.items[0]["n"], 16);
  EXPECT_EQ(job.items[2]["n"], 8);
}

TEST(SelfSupervised, LostPromptsAreCountedAndLeftOut) {
  StageInputs inputs = with_sft({.rounds = 1, .samples = 2, .steps = 1, .replay = 0});
  World world;
  world.lost = {"a#0"};
  world.answer = [](const JobRequest&, const Json&) -> std::vector<std::string> {
    return {"ok 1.50 s", "bad x"};
  };
  const StageOutput out = world.drive(inputs);
  EXPECT_EQ(out["rounds"][0]["lost_samples"], 2);
  EXPECT_EQ(out["samples"].size(), 2u);
}

TEST(SelfSupervised, ANotMeasuredCandidateIsTriedAgainWhenItComesAgain) {
  StageInputs inputs = with_sft({.rounds = 2, .samples = 1, .steps = 1, .replay = 0});
  World world;
  world.answer = [](const JobRequest&, const Json&) -> std::vector<std::string> { return {"lost x"}; };
  world.drive(inputs);
  EXPECT_EQ(world.jobs(), (std::vector<std::string>{"1/generate", "1/compile", "1/measure", "2/generate",
                                                    "2/compile", "2/measure"}));
}

TEST(SelfSupervised, NeedsACheckpoint) {
  StageInputs inputs = make_inputs("ssl", "self_supervised", workflow::SelfSupervisedSettings{});
  add_upstream(inputs, "collect", output_with("collect", "a", {"ok 1.00 p"}));
  try {
    make_stage(inputs);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(
        e.what(),
        "stage ssl: a self_supervised stage starts from a checkpoint, and none of the stages that it needs "
        "leaves one");
  }
}

TEST(SelfSupervised, ASecondTurnIsLearnedFromWithItsOwnPrompt) {
  StageInputs inputs = with_sft({.rounds = 1, .samples = 1, .steps = 1, .turns = 2, .replay = 0});
  inputs.spec.dataset.train = {"a"};
  World world;
  world.answer = [](const JobRequest& job, const Json& item) {
    return repeat(item, job.job == "generate" ? "bad x" : "ok 1.50 mended");
  };
  const StageOutput out = world.drive(inputs);
  const auto examples = examples_of(world.job("1/train"));
  ASSERT_EQ(examples.size(), 1u);
  EXPECT_EQ(examples[0]["id"], "a#0/0/2");
  EXPECT_EQ(examples[0]["prompt"], world.job("1/generate-2").items[0]["prompt"]);
  EXPECT_EQ(out["samples"][1]["turn"], 2);
}

TEST(SelfSupervised, EqualResultsGiveEqualBytes) {
  const auto run = [] {
    World world;
    world.answer = [](const JobRequest& job, const Json& item) -> std::vector<std::string> {
      return {"ok 1.50 s", "ok 1.00 " + std::to_string(job.round) + item["task"].get<std::string>(), "bad x"};
    };
    const StageOutput out = world.drive(with_sft({.rounds = 3, .samples = 3, .steps = 2, .replay = 0.5}));
    std::string text;
    for (const JobRequest& job : world.log) text += dump(job);
    return text + out.dump();
  };
  EXPECT_EQ(run(), run());
}

}  // namespace
}  // namespace warpsmith::stages
