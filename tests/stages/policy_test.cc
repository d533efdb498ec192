// Stages that ask servers: `policy: {endpoint: …}` and `teachers:`.
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

StageInputs trained_on_a_server(workflow::StageSettings settings, const std::string& kind = "contrastive") {
  StageInputs inputs = asked(kind, std::move(settings));
  inputs.spec.policy_weights = "sglang";
  StageOutput sft = output_with("sft", "a", {});
  sft["checkpoint"] = "checkpoints/sft-200";
  sft["checkpoint_digest"] = "0123456789abcdef";
  add_upstream(inputs, "sft", sft);
  return inputs;
}

// What a round learns is what the next one samples: the server gets it in between.
TEST_F(PolicyTest, AServersModelThatIsTrainedHereGetsEachRoundsWeights) {
  world.answer = [](const JobRequest&, const Json& item) -> std::vector<std::string> {
    const std::string task = item["task"];
    return {"ok 3.00 own + " + task, "ok 1.00 slow + " + task, "bad " + task};
  };
  StageInputs inputs =
      trained_on_a_server(workflow::ContrastiveSettings{.rounds = 2, .prompts = 2, .group = 3, .epochs = 1});
  const StageOutput out = world.drive(inputs);
  EXPECT_EQ(world.jobs(),
            (std::vector<std::string>{"1/weights", "1/generate", "1/compile", "1/measure", "1/train",
                                      "2/weights", "2/generate", "2/train", "2/export"}));
  EXPECT_EQ(world.job("1/weights").params["init"], "checkpoints/sft-200");
  EXPECT_EQ(world.job("1/weights").params["type"], "float32");
  const Json first = world.job("1/generate").params, second = world.job("2/generate").params;
  EXPECT_EQ(first["endpoint"]["weights"],
            (Json{{"way", "sglang"}, {"version", "sft-200-01234567"}, {"context", 1024}}));
  EXPECT_TRUE(first.contains("stage_folder")) << "the controller says where it lies";
  EXPECT_NE(second["endpoint"]["weights"]["version"], first["endpoint"]["weights"]["version"]);
  EXPECT_EQ(world.job("2/weights").params["init"], out["rounds"][0]["checkpoint"]);
  const std::vector<Json> examples = examples_of(world.job("1/train"));
  ASSERT_FALSE(examples.empty());
  EXPECT_FALSE(examples[0].contains("tokens")) << "the trainer finds tokens and log-probabilities by itself";
  EXPECT_TRUE(examples[0].contains("advantage"));
  EXPECT_FALSE(examples[0]["completion"].get<std::string>().empty());
  EXPECT_EQ(out["checkpoint"], out["rounds"][1]["checkpoint"]);
  EXPECT_TRUE(out["summary"].contains("server"));
}

TEST_F(PolicyTest, ARoundWithoutTrainingLeavesTheServerItsWeights) {
  world.answer = [](const JobRequest&, const Json& item) { return repeat(item, "bad all"); };
  StageInputs inputs =
      trained_on_a_server(workflow::ContrastiveSettings{.rounds = 2, .prompts = 2, .group = 3, .epochs = 1});
  const StageOutput out = world.drive(inputs);
  EXPECT_EQ(world.count("weights"), 1u);
  EXPECT_EQ(world.count("train"), 0u);
  EXPECT_EQ(world.job("2/generate").params["endpoint"]["weights"]["version"], "sft-200-01234567");
  EXPECT_EQ(out["checkpoint_digest"], "") << "no new one";
}

TEST_F(PolicyTest, Stage2TrainsAServersModelToo) {
  StageInputs inputs = trained_on_a_server(
      workflow::SelfSupervisedSettings{.rounds = 2, .samples = 2, .steps = 3}, "self_supervised");
  world.drive(inputs);
  EXPECT_EQ(world.jobs(),
            (std::vector<std::string>{"1/weights", "1/generate", "1/compile", "1/measure", "1/train",
                                      "2/weights", "2/generate", "2/train", "2/export"}));
}

TEST_F(PolicyTest, WithoutAModelThereIsNothingToTrain) {
  StageInputs inputs =
      asked("contrastive", workflow::ContrastiveSettings{.rounds = 1, .prompts = 1, .group = 2});
  inputs.spec.policy_weights = "sglang";
  EXPECT_THROW(make_stage(inputs), Error);
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

struct TeachersTest : PolicyTest {
  TeachersTest() {
    world.collected = [](const std::string& task) {
      return Json{{"candidates", {{{"candidate", to_json(program(task, "ok 1.00 p", "dataset"))}}}}};
    };
  }
  static StageInputs with(std::vector<workflow::TeacherSettings> teachers) {
    workflow::CollectSettings settings;
    settings.teachers = std::move(teachers);
    return make_inputs("collect", "collect", std::move(settings));
  }
  static std::string fenced(const std::string& code) { return "Thus:\n```cuda\n" + code + "\n```\n"; }
  static workflow::TeacherSettings teacher(const std::string& name, int trials, int successes) {
    return {.name = name, .endpoint = endpoint(), .trials = trials, .successes = successes};
  }
  std::vector<std::string> asked() const {
    std::vector<std::string> out;
    for (const JobRequest& job : world.log)
      for (const Json& item : job.items)
        if (job.job.starts_with("ask-"))
          out.push_back(std::to_string(job.round) + " " + job.job + " " + item["task"].get<std::string>() +
                        " " + item["n"].dump());
    return out;
  }
};

// Until so many succeeded, or so many trials are over; held-out tasks are not shown to anybody.
TEST_F(TeachersTest, AreAskedUntilEnoughSucceeded) {
  world.answer = [](const JobRequest& job, const Json& item) {
    std::vector<std::string> texts;
    for (int i = 0; i < item["n"]; ++i) {
      const std::string name = " " + job.job.substr(4) + std::to_string(10 * job.round + i);
      const bool good = item["task"] == "a" && (job.round == 1 ? i == 0 : true);
      texts.push_back(fenced((good ? "ok 2.00" : "wrong") + name));
    }
    return texts;
  };
  const StageOutput out = world.drive(with({teacher("one", 5, 2), teacher("two", 1, 1)}));
  EXPECT_EQ(asked(),
            (std::vector<std::string>{"1 ask-one a 2", "1 ask-one b 2", "1 ask-two a 1", "1 ask-two b 1",
                                      "2 ask-one a 1", "2 ask-one b 2", "3 ask-one b 1"}));
  EXPECT_EQ(world.job("1/ask-one").program, "warpsmith-generate");
  EXPECT_EQ(world.job("1/ask-one").params["endpoint"]["model"], "coder");
  EXPECT_TRUE(world.job("1/ask-one").one_shard);
  EXPECT_EQ(world.job("1/ask-one").params["max_tokens"], 4096);
  const Json& one = out["summary"]["teachers"]["one"];
  EXPECT_EQ(one["trials"], 8);
  EXPECT_EQ(one["successes"], 2);
  EXPECT_EQ(one["tasks"], 1);
  EXPECT_EQ(one["prompt_tokens"], 500);
  int theirs = 0;
  for (const Json& entry : out["candidates"]) {
    const Json& origin = entry["candidate"]["origin"];
    if (origin["kind"] != "teacher") continue;
    ++theirs;
    EXPECT_TRUE(
        origin["detail"].get<std::string>().starts_with(theirs <= 4 || theirs > 6 ? "one: " : "two: "))
        << origin;
  }
  EXPECT_EQ(theirs, 10);
}

// A run that goes on hears of the jobs in another order, and asks for the same.
TEST_F(TeachersTest, WhoAnswersFirstChangesNothing) {
  world.answer = [](const JobRequest& job, const Json& item) {
    return repeat(item, fenced("ok 2.00 by " + job.job.substr(4)));
  };
  const StageInputs inputs = with({teacher("one", 4, 1), teacher("two", 4, 1)});
  std::vector<std::string> compiled;
  for (const bool turned : {false, true}) {
    const auto stage = make_stage(inputs);
    StageStep step = stage->on_job(world.run(stage->start().jobs.at(0)));
    step = stage->on_job(world.run(step.jobs.at(0)));
    step = stage->on_job(world.run(step.jobs.at(0)));
    std::vector<JobRequest> jobs = std::move(step.jobs);
    ASSERT_EQ(jobs.size(), 2u);
    if (turned) std::swap(jobs[0], jobs[1]);
    EXPECT_TRUE(stage->on_job(world.run(jobs[0])).jobs.empty());
    compiled.push_back(dump(stage->on_job(world.run(jobs[1])).jobs.at(0)));
  }
  EXPECT_EQ(compiled[0], compiled[1]);
}

// What they wrote is learned from, and is not the model's.
TEST_F(TeachersTest, TheirProgramsAreExamples) {
  world.answer = [](const JobRequest&, const Json& item) { return repeat(item, fenced("ok 2.00 taught")); };
  StageInputs inputs = make_inputs("sft", "sft", workflow::SftSettings{.steps = 1});
  add_upstream(inputs, "collect", world.drive(with({teacher("one", 4, 1)})));
  World sft;
  sft.drive(inputs);
  bool found = false;
  for (const Json& example : examples_of(sft.job("0/train")))
    found = found || example["completion"].get<std::string>().find("taught") != std::string::npos;
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace warpsmith::stages
