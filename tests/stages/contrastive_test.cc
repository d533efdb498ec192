#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "world.h"

namespace warpsmith::stages {
namespace {

using workflow::ContrastiveSettings;
using workflow::Exemplars;

const std::string kReference = "Reference:\nx[N] -> out[N]\ndef forward(x):\n  return f_a(x)\n";
const std::string kPrompt = "Make it faster; compare the earlier ones.\n" + kReference +
                            "Earlier, 1.00x:\nok 1.00 p\nEarlier, 2.00x:\nok 2.00 q\n"
                            "Answer: code only.\nRules: same results, no caching.\nCode:\n";

std::function<std::vector<std::string>(const JobRequest&, const Json&)> always(
    std::vector<std::string> texts) {
  return [texts](const JobRequest&, const Json&) { return texts; };
}

// What fits is known where the tokens are: the job is given shorter prompts, and says which it asked.
TEST(Contrastive, AShorterPromptThatWasAskedIsWhatIsLearned) {
  World world;
  world.answer = always({"ok 1.00 p", "ok 4.00 new"});
  world.exemplars_left_out = 1;
  const StageOutput out = world.drive(with_model({.rounds = 1, .prompts = 1, .group = 2}));
  const Json& item = world.job("1/generate").items[0];
  EXPECT_EQ(item["prompt"], kPrompt);
  ASSERT_EQ(item["shorter"].size(), 2u);
  EXPECT_EQ(examples_of(world.job("1/train"))[0]["prompt"], item["shorter"][0]);
  EXPECT_NE(item["shorter"][0], kPrompt);
  EXPECT_EQ(item["shorter"][1], "Make it faster.\n" + kReference + "Code:\n");
  EXPECT_EQ(out["rounds"][0]["exemplars_left_out"], 1);

  world.exemplars_left_out = 3;
  EXPECT_THROW(world.drive(with_model({.rounds = 1, .prompts = 1, .group = 2})), Error) << "of two";
}

TEST(Contrastive, AShareOfThePromptsShowsNoExemplar) {
  const auto plain_of = [](double share) {
    World world;
    world.answer = always({"ok 1.00 p", "ok 4.00 new"});
    world.drive(with_model({.rounds = 1, .prompts = 40, .group = 2, .plain_share = share}));
    int plain = 0;
    for (const Json& item : world.job("1/generate").items)
      plain += item["prompt"].get<std::string>().starts_with("Make it faster.\n");
    return plain;
  };
  EXPECT_EQ(plain_of(0), 0);
  EXPECT_EQ(plain_of(1), 40);
  EXPECT_GT(plain_of(0.5), 10);
  EXPECT_LT(plain_of(0.5), 30);
}

// Programs of the tier that is asked for alone are shown, and answers are such programs.
TEST(Contrastive, AModelMayWriteModulesOfPython) {
  StageInputs inputs = with_model({.rounds = 1, .prompts = 1, .group = 2});
  inputs.spec.prompt.answer = "python";
  World world;
  world.answer = always({"ok 1.00 p", "ok 4.00 new"});
  const StageOutput out = world.drive(inputs);
  EXPECT_EQ(world.job("1/generate").items[0]["prompt"], "Make it faster.\n" + kReference + "Code:\n");
  const Candidate candidate = candidate_from_json(world.job("1/compile").items[0]["candidate"]);
  EXPECT_EQ(candidate.tier, Tier::kPython);
  EXPECT_EQ(candidate.files.at(0).path, "model.py");
  EXPECT_EQ(out["samples"].size(), 2u);
}

TEST(Contrastive, ARoundPromptsMeasuresAndUpdates) {
  StageInputs inputs = with_model({.rounds = 1, .prompts = 1, .group = 6, .epochs = 2});
  inputs.spec.optimizer.batch_tokens = 300;
  World world;
  world.answer =
      always({"ok 1.00 p", "ok 4.00 new", "bad x", "unsupported y", "unstable z", "imprecise 9.00 w"});
  const StageOutput out = world.drive(inputs);
  EXPECT_EQ(world.jobs(), (std::vector<std::string>{"1/generate", "1/compile", "1/measure", "1/train"}));
  const JobRequest& generate = world.job("1/generate");
  EXPECT_EQ(ids_of(generate.items), (std::vector<std::string>{"a#0"}));
  EXPECT_EQ(generate.items[0]["prompt"], kPrompt);
  EXPECT_EQ(generate.items[0]["n"], 6);
  EXPECT_EQ(world.job("1/measure").params["best"], Json({{"a", 2.0}}));

  // Log rewards of the window: 0, log 2 (upstream), 0, log 4 (this round): mean 3/4 log 2, deviation
  // sqrt(11)/4 log 2.
  const double deviation = std::sqrt(11.0) / 4;
  ASSERT_GT(1.25 / deviation, 1.5);
  const double low = -0.75 / deviation, high = 1.5;  // of 1.00x, and of 4.00x, which is clipped
  const double failure = low - 1;  // below -1.5, and the margin below the lowest valid score
  ASSERT_LT(failure, -1.5);
  const double mean = (low + high + failure) / 3;
  const double sigma = std::sqrt(
      ((low - mean) * (low - mean) + (high - mean) * (high - mean) + (failure - mean) * (failure - mean)) /
      3);
  const JobRequest& train = world.job("1/train");
  const auto examples = examples_of(train);
  ASSERT_EQ(examples.size(), 3u);  // unsupported, unstable and imprecise ones are left out
  EXPECT_NEAR(examples[0]["advantage"].get<double>(), (low - mean) / sigma, 1e-12);
  EXPECT_NEAR(examples[1]["advantage"].get<double>(), (high - mean) / sigma, 1e-12);
  EXPECT_NEAR(examples[2]["advantage"].get<double>(), (failure - mean) / sigma, 1e-12);
  EXPECT_EQ(examples[1]["id"], "a#0/1");
  EXPECT_EQ(examples[1]["group"], "a#0");
  EXPECT_EQ(examples[1]["prompt"], kPrompt);
  EXPECT_EQ(examples[1]["completion"], "ok 4.00 new");
  EXPECT_EQ(examples[1]["folder"], "stages/x/1/generate/0/1");
  EXPECT_EQ(examples[1]["tokens"]["file"], "blob.bin");
  EXPECT_EQ(examples[1]["logprobs"]["file"], "blob.bin");

  EXPECT_EQ(train.params["mode"], "grpo");
  EXPECT_EQ(train.params["init"], "checkpoints/ssl-200");
  EXPECT_EQ(train.params["reference"], "checkpoints/ssl-200");
  EXPECT_DOUBLE_EQ(train.params["clip_ratio"].get<double>(), 0.2);
  EXPECT_DOUBLE_EQ(train.params["kl"].get<double>(), 0.01);
  EXPECT_DOUBLE_EQ(train.params["kl_clamp"].get<double>(), 10);
  EXPECT_EQ(train.params["epochs"], 2);
  // 50 prompt tokens once and 3 x 100 are over a batch of 300, but a group is not cut: one batch, twice.
  EXPECT_EQ(ids_of(train.items), (std::vector<std::string>{"step-201", "step-202"}));

  EXPECT_EQ(out["checkpoint"], "checkpoints/rl-202");
  EXPECT_NEAR(out["samples"][2]["reward"].get<double>(), failure, 1e-12);
  EXPECT_FALSE(out["samples"][3].contains("reward"));
  EXPECT_NEAR(out["rounds"][0]["mean_reward"].get<double>(), mean, 1e-12);
  EXPECT_EQ(out["rounds"][0]["database"], 3);
  EXPECT_EQ(out["rounds"][0]["tokens"], 100 * out["rounds"][0]["samples"].get<int>());
  EXPECT_EQ(out["rounds"][0]["groups_skipped"], 0);
}

TEST(Contrastive, StepsFollowFromTheTokensOfABatch) {
  const auto steps = [](int batch_tokens) {
    StageInputs inputs = with_model({.rounds = 1, .prompts = 4, .group = 2, .epochs = 3});
    inputs.spec.optimizer.batch_tokens = batch_tokens;
    World world;
    world.answer = always({"ok 1.00 p", "bad x"});
    world.drive(inputs);
    return world.count("train");
  };
  EXPECT_EQ(steps(2000), 3u);  // four groups of 50 + 2 x 100 tokens: 1000
  EXPECT_EQ(steps(1000), 3u);
  EXPECT_EQ(steps(999), 6u);
  EXPECT_EQ(steps(100), 12u);  // at most one step a group
}

TEST(Contrastive, LostSamplesHaveNoReward) {
  StageInputs inputs = with_model({.rounds = 1, .prompts = 1, .group = 3});
  World world;
  world.answer = always({"ok 4.00 new", "lost x", "bad y"});
  const StageOutput out = world.drive(inputs);
  EXPECT_EQ(out["samples"][1]["verdict"], "not_measured");
  EXPECT_FALSE(out["samples"][1].contains("reward"));
  EXPECT_EQ(examples_of(world.job("1/train")).size(), 2u);
}

TEST(Contrastive, EqualRewardsAreSkippedAndCounted) {
  StageInputs inputs = with_model({.rounds = 2, .prompts = 2, .group = 2});
  World world;
  world.answer = [](const JobRequest& job, const Json& item) -> std::vector<std::string> {
    if (job.round == 1) return {"bad x", "bad y"};
    if (item["id"] == "a#0") return {"ok 1.00 p", "ok 1.00 p"};
    return {"ok 1.00 p", "bad x"};
  };
  const StageOutput out = world.drive(inputs);
  EXPECT_EQ(world.jobs(), (std::vector<std::string>{"1/generate", "1/compile", "2/generate", "2/train"}));
  EXPECT_EQ(out["rounds"][0]["groups_skipped"], 2);
  EXPECT_EQ(out["rounds"][1]["groups_skipped"], 1);
  EXPECT_EQ(out["summary"]["prompt_groups"], 4);
  EXPECT_EQ(out["summary"]["groups_skipped"], 3);
  EXPECT_EQ(world.job("2/generate").params["checkpoint"],
            "checkpoints/ssl-200");  // nothing was learned in round 1
}

TEST(Contrastive, TheDatabaseGrowsEachRound) {
  StageInputs inputs = with_model({.rounds = 3, .prompts = 1, .group = 3, .bucket_tau = 0.01});
  World world;
  world.answer = [](const JobRequest& job, const Json&) -> std::vector<std::string> {
    if (job.round == 1) return {"ok 5.00 better", "bad x", "bad x"};
    if (job.round == 2) return {"imprecise 8.00 noisy", "ok 6.00 best", "bad x"};
    return {"bad x", "bad y", "bad z"};
  };
  const StageOutput out = world.drive(inputs);
  // A temperature near zero takes the best buckets.
  EXPECT_EQ(world.job("1/generate").items[0]["prompt"], kPrompt);
  EXPECT_NE(world.job("2/generate")
                .items[0]["prompt"]
                .get<std::string>()
                .find("Earlier, 2.00x:\nok 2.00 q\nEarlier, 5.00x:\nok 5.00 better\n"),
            std::string::npos);
  EXPECT_NE(world.job("3/generate")
                .items[0]["prompt"]
                .get<std::string>()
                .find("Earlier, 5.00x:\nok 5.00 better\nEarlier, 6.00x:\nok 6.00 best\n"),
            std::string::npos);
  EXPECT_EQ(out["rounds"][2]["database"], 4);  // an imprecise score is no exemplar
  EXPECT_EQ(world.job("2/generate").params["checkpoint"], out["rounds"][0]["checkpoint"]);
  EXPECT_EQ(world.job("2/train").params["reference"], "checkpoints/ssl-200");
  EXPECT_EQ(world.job("2/measure").params["best"], Json({{"a", 5.0}}));
}

TEST(Contrastive, WithoutExemplarsThePromptIsThatOfStageOne) {
  World world;
  world.answer = always({"ok 4.00 new", "bad x"});
  world.drive(with_model({.rounds = 1, .prompts = 1, .group = 2, .exemplars = Exemplars::kNone}));
  EXPECT_EQ(world.job("1/generate").items[0]["prompt"], "Make it faster.\n" + kReference + "Code:\n");
  EXPECT_EQ(world.count("train") > 0, true);
}

TEST(Contrastive, WithoutUpdateTheModelStaysAndTheDatabaseGrows) {
  World world;
  world.answer = always({"ok 4.00 new", "bad x"});
  const StageOutput out = world.drive(with_model({.rounds = 2, .prompts = 1, .group = 2, .update = false}));
  EXPECT_EQ(world.count("train"), 0u);
  EXPECT_EQ(out["checkpoint"], "checkpoints/ssl-200");
  EXPECT_EQ(out["rounds"][0]["database"], 3);
}

TEST(Contrastive, EachKindOfExemplarsDrawsInItsOwnWay) {
  const std::vector<std::string> many = {"ok 1.00 a", "ok 1.01 b", "ok 1.02 c",
                                         "ok 1.03 d", "ok 9.00 e", "ok 9.01 f"};
  const auto prompts = [&](Exemplars kind) {
    World world;
    world.answer = always({"bad x"});
    world.drive(with_model(
        {.rounds = 1, .prompts = 40, .group = 1, .exemplars = kind, .bucket_tau = 100, .islands = 3}, many));
    std::vector<std::string> out;
    for (const Json& item : world.job("1/generate").items) out.push_back(item["prompt"]);
    return out;
  };
  const auto fast = [](const std::string& prompt) {
    return (prompt.find("ok 9.00 e") != std::string::npos) + (prompt.find("ok 9.01 f") != std::string::npos);
  };
  int bucket_fast = 0, random_fast = 0, random_both = 0;
  for (const std::string& p : prompts(Exemplars::kBucket)) {
    EXPECT_EQ(fast(p), 1) << p;  // two distinct buckets: one program from each
    bucket_fast += fast(p);
  }
  for (const std::string& p : prompts(Exemplars::kRandom))
    random_fast += fast(p) > 0, random_both += fast(p) == 2;
  EXPECT_EQ(bucket_fast, 40);
  EXPECT_LT(random_fast, 40);  // 24 are expected
  EXPECT_GT(random_both, 0);   // 2.7 are expected; the draws are fixed by the seed
  // Islands of two programs each, dealt in turn: a d, b e, c f.
  for (const std::string& p : prompts(Exemplars::kIsland)) {
    const auto has = [&](const char* s) { return p.find(s) != std::string::npos; };
    EXPECT_TRUE((has("ok 1.00 a") && has("ok 1.03 d")) || (has("ok 1.01 b") && has("ok 9.00 e")) ||
                (has("ok 1.02 c") && has("ok 9.01 f")))
        << p;
  }
}

TEST(Contrastive, RawRewardsChangeTheAdvantages) {
  const auto advantage = [](const char* reward) {
    World world;
    world.answer = always({"ok 1.00 p", "ok 4.00 new", "ok 2.00 q"});
    ContrastiveSettings settings{.rounds = 1, .prompts = 1, .group = 3};
    settings.reward = reward;
    settings.smoothing_clip = 5;
    world.drive(with_model(settings));
    return examples_of(world.job("1/train")).at(2)["advantage"].get<double>();
  };
  EXPECT_NEAR(advantage("log"), 0.0, 1e-9);  // log 2 lies in the middle of log 1 and log 4
  EXPECT_LT(advantage("raw"), -0.2);
  ContrastiveSettings wrong;
  wrong.reward = "square";
  EXPECT_THROW(make_stage(with_model(wrong)), Error);
}

std::vector<double> rewards_of(const StageOutput& out) {
  std::vector<double> rewards;
  for (const Json& sample : out["samples"]) rewards.push_back(sample.value("reward", std::nan("")));
  return rewards;
}

TEST(Contrastive, MilestonesAreOverEagerAndTheBestBaselineThatWasMeasured) {
  ContrastiveSettings settings{.rounds = 1, .prompts = 1, .group = 5};
  settings.reward = "milestones";
  World world;
  world.answer = always({"bad x", "ok 1.04 r", "ok 1.60 s", "ok 3.00 t", "unstable u"});
  std::vector<double> rewards = rewards_of(world.drive(with_model(settings)));
  EXPECT_TRUE(std::isnan(rewards.back()));
  rewards.pop_back();
  EXPECT_EQ(rewards, (std::vector<double>{-1, 1, 3, 3}));  // eager alone

  const auto baseline = [](const char* name, double ratio, const char* state = "covered") -> Json {
    Json timing = {{"task", "a"}, {"baseline", name}, {"state", state}};
    if (ratio > 0)
      timing.update({{"ratio", ratio},
                     {"interval", {ratio, ratio}},
                     {"eager_ns", 1000 * ratio},
                     {"baseline_ns", 1000}});
    return {{"extra", true}, {"baseline", timing}};
  };
  world.extras = {baseline("eager", 4), baseline("torch_compile", 2), baseline("cuda_graph", 1.5),
                  baseline("cudnn", 0, "not_covered")};
  rewards = rewards_of(world.drive(with_model(settings)));
  rewards.pop_back();
  EXPECT_EQ(rewards, (std::vector<double>{-1, 1, 2, 3}));
}

TEST(Contrastive, NoMilestoneIsPastABaselineThatIsNotKnown) {
  ContrastiveSettings settings{.rounds = 1, .prompts = 1, .group = 3};
  settings.reward = "milestones";
  World world;
  world.answer = always({"bad x", "ok 1.04 r", "ok 3.00 s"});
  const auto rewards = [&](std::vector<std::string> baselines, const std::string& baseline = "eager") {
    StageInputs inputs = with_model(settings);
    inputs.spec.device = "H100";
    inputs.spec.protocol.baselines = std::move(baselines);
    inputs.spec.protocol.baseline = baseline;
    return rewards_of(world.drive(inputs));
  };
  const std::vector<double> capped = {-1, 1, 2}, eager_alone = {-1, 1, 3};
  EXPECT_EQ(rewards({"all"}), capped);
  EXPECT_EQ(rewards({"eager", "cudnn"}), capped);
  EXPECT_EQ(rewards({"eager"}, "torch_compile"), capped) << "that of the score is one, too";
  EXPECT_EQ(rewards({"eager"}), eager_alone);
  EXPECT_EQ(rewards({}), eager_alone);
  world.extras = {
      {{"extra", true}, {"baseline", {{"task", "a"}, {"baseline", "cudnn"}, {"state", "missing"}}}}};
  EXPECT_EQ(rewards({"all"}), capped);
}

TEST(Contrastive, LongerAnswersCost) {
  ContrastiveSettings settings{.rounds = 1, .prompts = 1, .group = 2};
  settings.reward = "milestones";
  settings.length_penalty = 0.4;
  World world;
  world.answer = always({"bad x", "ok 1.00 p"});
  // 100 tokens of 400.
  const std::vector<double> rewards = rewards_of(world.drive(with_model(settings)));
  EXPECT_NEAR(rewards.at(0), -1.1, 1e-12);
  EXPECT_NEAR(rewards.at(1), 0.9, 1e-12);
}

TEST(Contrastive, KernelsOfLibrariesCost) {
  ContrastiveSettings settings{.rounds = 1, .prompts = 1, .group = 3};
  settings.reward = "milestones";
  settings.library_penalty = 0.4;
  World world;
  world.answer = always({"bad x", "ok 1.00 borrowed", "ok 1.00 p"});  // a quarter is its own; not known
  const std::vector<double> rewards = rewards_of(world.drive(with_model(settings)));
  EXPECT_NEAR(rewards.at(0), -1, 1e-12);
  EXPECT_NEAR(rewards.at(1), 0.7, 1e-12);
  EXPECT_NEAR(rewards.at(2), 1, 1e-12);
}

TEST(Contrastive, AdvantagesMayBeOverTheOthers) {
  ContrastiveSettings settings{.rounds = 1, .prompts = 1, .group = 3};
  settings.reward = "milestones";
  settings.advantage = "leave_one_out";
  World world;
  world.answer = always({"bad x", "ok 1.00 p", "ok 3.00 t"});
  const StageOutput out = world.drive(with_model(settings));
  EXPECT_EQ(out["samples"][0]["advantage"], -3);
  EXPECT_EQ(out["samples"][1]["advantage"], 0);
  EXPECT_EQ(out["samples"][2]["advantage"], 3);
  settings.advantage = "mean";
  EXPECT_THROW(make_stage(with_model(settings)), Error);
}

ContrastiveSettings two_turns() {
  ContrastiveSettings settings{.rounds = 1, .prompts = 1, .group = 3, .turns = 2};
  settings.reward = "milestones";
  return settings;
}

// Sample 0 is mended, 1 is made faster, 2 is not measured, and asked no more.
std::vector<std::string> first_and_second(const JobRequest&, const Json& item) {
  const std::string id = item["id"];
  if (id == "a#0") return {"bad x", "ok 1.00 p", "lost z"};
  if (id == "a#0/0/2") return {"ok 1.02 mended"};
  if (id == "a#0/1/2") return {"ok 3.00 faster"};
  ADD_FAILURE() << id;
  return {""};
}

TEST(Contrastive, ASecondTurnAsksWrongAndRightAnswersAgain) {
  World world;
  world.answer = first_and_second;
  const StageOutput out = world.drive(with_model(two_turns()));
  EXPECT_EQ(world.jobs(), (std::vector<std::string>{"1/generate", "1/compile", "1/measure", "1/generate-2",
                                                    "1/compile-2", "1/measure-2", "1/train"}));
  EXPECT_EQ(world.job("1/generate").items[0]["prompt"], kPrompt);
  const std::vector<Json>& items = world.job("1/generate-2").items;
  ASSERT_EQ(ids_of(items), (std::vector<std::string>{"a#0/0/2", "a#0/1/2"}));
  EXPECT_EQ(items[0]["prompt"], "Make it right.\n" + kReference +
                                    "Earlier, compile_error:\nbad x\n| kernel.cu:1: bad\n"
                                    "Answer: code only.\nRules: same results, no caching.\nCode:\n");
  EXPECT_EQ(items[0]["shorter"], Json({"Make it faster.\n" + kReference + "Code:\n"}));
  EXPECT_EQ(items[0]["n"], 1);
  EXPECT_EQ(items[1]["prompt"].get<std::string>().rfind(
                "Make it faster.\n" + kReference + "Earlier, 1.00x:\nok 1.00 p\n", 0),
            0u);
  const Candidate mended = candidate_from_json(world.job("1/compile-2").items[0]["candidate"]);
  EXPECT_EQ(mended.origin.detail, "a#0/0/2");
  EXPECT_EQ(mended.origin.parent, program("a", "bad x").id);

  // The turns of a sample follow one another.
  const Json& samples = out["samples"];
  std::vector<std::string> places;
  for (const Json& s : samples)
    places.push_back(s["item"].get<std::string>() + " " + s["sample"].dump() + " " +
                     s.value("turn", Json(1)).dump());
  ASSERT_EQ(places, (std::vector<std::string>{"a#0 0 1", "a#0 0 2", "a#0 1 1", "a#0 1 2", "a#0 2 1"}));
  // Rewards -1 and 1, and 1 and 3, of mean 1; the discount is 0.4.
  const double discounted[] = {-2 + 0.4 * 0, 0, 0 + 0.4 * 2, 2};
  const double mean = (discounted[0] + discounted[1] + discounted[2] + discounted[3]) / 4;
  double squares = 0;
  for (const double d : discounted) squares += (d - mean) * (d - mean);
  const auto examples = examples_of(world.job("1/train"));
  ASSERT_EQ(examples.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(samples[i]["discounted"].get<double>(), discounted[i], 1e-12) << i;
    EXPECT_NEAR(examples[i]["advantage"].get<double>(), (discounted[i] - mean) / std::sqrt(squares / 4),
                1e-12)
        << i;
    EXPECT_EQ(examples[i]["group"], "a#0");
  }
  EXPECT_EQ(samples[0]["reward"], -1);
  EXPECT_FALSE(samples[4].contains("reward"));
  EXPECT_EQ(examples[1]["id"], "a#0/0/2");
  EXPECT_EQ(examples[1]["prompt"], items[0]["prompt"]);
  EXPECT_EQ(examples[1]["completion"], "ok 1.02 mended");
  EXPECT_EQ(out["rounds"][0]["groups"], 1);
  ASSERT_EQ(out["rounds"][0]["turns"].size(), 2u);
  EXPECT_EQ(out["rounds"][0]["turns"][0]["ok"], 1);
  EXPECT_EQ(out["rounds"][0]["turns"][1]["ok"], 2);
  EXPECT_EQ(out["rounds"][0]["database"], 4);  // "ok 1.00 p" was there
}

// Sums of equal rewards would differ by the number of their terms alone.
TEST(Contrastive, AGroupThatFailsInEveryTurnIsSkipped) {
  World world;
  world.answer = [](const JobRequest&, const Json& item) { return repeat(item, "bad x"); };
  ContrastiveSettings settings{.rounds = 1, .prompts = 1, .group = 2, .turns = 3};
  const StageOutput out = world.drive(with_model(settings));
  EXPECT_EQ(out["samples"].size(), 6u);
  EXPECT_EQ(out["rounds"][0]["groups_skipped"], 1);
  EXPECT_EQ(world.count("train"), 0u);
}

TEST(Contrastive, OneTurnLeavesNoTrace) {
  World world;
  world.answer = always({"ok 4.00 new", "bad x"});
  const StageOutput out = world.drive(with_model({.rounds = 1, .prompts = 1, .group = 2}));
  const std::string text = out.dump();
  for (const char* key : {"\"turn\"", "\"turns\"", "\"discounted\""})
    EXPECT_EQ(text.find(key), std::string::npos) << key;
}

TEST(Contrastive, ARoundEndsWhereNothingIsLeftToAskAgain) {
  ContrastiveSettings settings = two_turns();
  settings.turns = 5;
  settings.rounds = 2;
  World world;
  world.answer = [](const JobRequest& job, const Json& item) {
    return repeat(item, "lost " + std::to_string(job.round));
  };
  world.drive(with_model(settings));
  EXPECT_EQ(world.jobs(), (std::vector<std::string>{"1/generate", "1/compile", "1/measure", "2/generate",
                                                    "2/compile", "2/measure"}));
}

// A controller that goes on with a run makes its stages anew and tells them the same results.
TEST(Contrastive, AStageThatIsToldTheSameAsksTheSameInEveryTurn) {
  ContrastiveSettings settings = two_turns();
  settings.turns = 3;
  settings.rounds = 2;
  const StageInputs inputs = with_model(settings);
  World world;
  world.answer = [](const JobRequest& job, const Json& item) {
    const std::string turn = job.job + std::to_string(job.round);
    std::vector<std::string> answers = {"bad " + turn, "ok 1.20 " + turn, "ok 1.00 " + turn};
    answers.resize(item["n"].get<std::size_t>());
    return answers;
  };
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
  const auto again = make_stage(inputs);
  step = again->start();
  for (std::size_t i = 0; i < told.size(); ++i) {
    ASSERT_EQ(step.jobs.size(), 1u);
    EXPECT_EQ(dump(step.jobs[0]), asked[i]) << i;
    step = again->on_job(told[i]);
  }
  ASSERT_TRUE(step.finished);
  EXPECT_EQ(step.output.dump(), output);
  std::set<std::string> names;
  for (const JobResult& result : told)
    EXPECT_TRUE(names.insert(std::to_string(result.round) + result.job).second)
        << "one job of a name a round";
  EXPECT_TRUE(names.contains("2generate-3"));
}

TEST(Contrastive, AResultOfAnotherTurnIsRefused) {
  const auto stage = make_stage(with_model(two_turns()));
  World world;
  world.answer = first_and_second;
  JobResult result = world.run(stage->start().jobs.at(0));
  result.job = "generate-2";
  EXPECT_THROW(stage->on_job(result), Error);
}

TEST(Contrastive, TasksTakeTurnsOverRounds) {
  StageInputs inputs = with_model({.rounds = 2, .prompts = 3, .group = 1});
  inputs.spec.dataset.train = {"a", "b"};
  World world;
  world.answer = always({"bad x"});
  world.drive(inputs);
  EXPECT_EQ(ids_of(world.job("1/generate").items), (std::vector<std::string>{"a#0", "b#0", "a#1"}));
  EXPECT_EQ(ids_of(world.job("2/generate").items), (std::vector<std::string>{"b#0", "a#0", "b#1"}));
  // No program of `b` is known: it is asked without exemplars.
  EXPECT_EQ(world.job("1/generate").items[1]["prompt"].get<std::string>().rfind("Make it faster.\n", 0), 0u);
}

TEST(Contrastive, EqualResultsGiveEqualBytes) {
  for (const Exemplars kind :
       {Exemplars::kBucket, Exemplars::kIsland, Exemplars::kRandom, Exemplars::kNone}) {
    const auto run = [&](std::uint64_t seed) {
      StageInputs inputs = with_model(
          {.rounds = 4, .prompts = 3, .group = 3, .exemplars = kind, .islands = 2, .island_reset_every = 2},
          {"ok 1.00 p", "ok 2.00 q", "ok 1.10 r", "ok 1.50 s"});
      inputs.spec.dataset.train = {"a", "b"};
      inputs.spec.seed = seed;
      World world;
      world.answer = [](const JobRequest& job, const Json& item) -> std::vector<std::string> {
        const std::string n = std::to_string(job.round);
        return {"ok 1." + n + "0 " + item["id"].get<std::string>(), "bad " + n, "ok 2.00 q"};
      };
      const StageOutput out = world.drive(inputs);
      std::string text;
      for (const JobRequest& job : world.log) text += dump(job);
      return text + out.dump();
    };
    EXPECT_EQ(run(7), run(7));
    if (kind != Exemplars::kNone) {
      EXPECT_NE(run(7), run(8));
    }
  }
}

}  // namespace
}  // namespace warpsmith::stages
