#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <set>

#include "warpsmith/method/source_text.h"
#include "world.h"

namespace warpsmith::stages {
namespace {

using workflow::MeasureSettings;

StageInputs with_checkpoint(MeasureSettings settings) {
  StageInputs inputs = make_inputs("evaluate", "measure", std::move(settings));
  StageOutput collect = output_with("collect", "a", {"ok 1.00 p", "ok 2.00 q"});
  const StageOutput more = output_with("collect", "c", {"ok 3.00 p", "ok 3.50 q"});
  for (const Json& entry : more["candidates"]) collect["candidates"].push_back(entry);
  add_upstream(inputs, "collect", collect);
  StageOutput rl = output_with("rl", "a", {"ok 7.00 found + by + one"}, "generated");
  rl["checkpoint"] = "checkpoints/rl-300";
  add_upstream(inputs, "rl", rl);
  return inputs;
}

TEST(Evaluate, SamplesAFrozenCheckpointOverAllGroups) {
  World world;
  world.answer = [](const JobRequest&, const Json& item) {
    return repeat(item, item["task"] == "d" ? "bad x" : item["task"] == "a" ? "ok 2.00 q" : "ok 0.50 y + z");
  };
  const StageOutput out = world.drive(with_checkpoint({.checkpoint_of = "rl", .samples = 24}));
  EXPECT_EQ(world.jobs(), (std::vector<std::string>{"0/generate", "0/compile", "0/measure"}));
  EXPECT_EQ(world.job("0/generate").params["checkpoint"], "checkpoints/rl-300");
  EXPECT_EQ(ids_of(world.job("0/generate").items),
            (std::vector<std::string>{"a#0", "a#1", "b#0", "b#1", "c#0", "c#1", "d#0", "d#1"}));
  EXPECT_EQ(world.job("0/generate").items[1]["n"], 8);
  EXPECT_EQ(world.job("0/generate").items[0]["prompt"].get<std::string>().rfind("Make it faster.\nRef", 0),
            0u);
  EXPECT_EQ(world.count("compile"), 3u);  // "ok 2.00 q" of `a` is known
  EXPECT_EQ(out["samples"].size(), 96u);
  EXPECT_EQ(out["samples"][0], Json({{"round", 0},
                                     {"item", "a#0"},
                                     {"sample", 0},
                                     {"task", "a"},
                                     {"group", "train"},
                                     {"candidate", program("a", "ok 2.00 q").id},
                                     {"verdict", "ok"},
                                     {"speedup", 2.0},
                                     {"repeated", true},
                                     {"known", true}}));
  EXPECT_EQ(out["evaluated"], "checkpoints/rl-300");
  EXPECT_FALSE(out.contains("checkpoint"));
  const Json& groups = out["summary"]["groups"];
  EXPECT_EQ(groups["train"]["samples"], 48);
  EXPECT_NEAR(groups["train"]["one_draw"].get<double>(), std::sqrt(2.0), 1e-12);
  EXPECT_NEAR(groups["train"]["one_draw_unfloored"].get<double>(), 1.0, 1e-12);
  EXPECT_EQ(groups["train"]["repeated"], 24) << "`ok 2.00 q` is a person's";
  EXPECT_NEAR(groups["train"]["geomean"].get<double>(), 0.5, 1e-12);
  EXPECT_DOUBLE_EQ(groups["train"]["above_1_01"].get<double>(), 0);
  EXPECT_DOUBLE_EQ(groups["heldout_combination"]["one_draw"].get<double>(), 1.0);
  EXPECT_DOUBLE_EQ(groups["heldout_operation"]["valid_share"].get<double>(), 0.0);
  EXPECT_NEAR(groups["heldout_operation"]["one_draw_unfloored"].get<double>(), 0.01, 1e-12);
  EXPECT_FALSE(groups["heldout_operation"].contains("geomean"));
}

// Dead code makes no program new: what counts is what becomes of it.
TEST(Evaluate, MachineCodeOfOthersIsKnown) {
  World world;
  world.answer = [](const JobRequest&, const Json& item) -> std::vector<std::string> {
    if (item["task"] != "a") return {"bad x", "bad x"};
    return {"ok 1.50 (mine + m) code=theirs", "ok 1.50 (mine * m) code=new"};
  };
  StageInputs inputs = with_checkpoint({.checkpoint_of = "rl", .samples = 2, .heldout = false});
  add_upstream(inputs, "others", output_with("others", "b", {"ok 8.00 c[d] code=theirs"}));
  add_upstream(inputs, "models", output_with("models", "a", {"ok 8.00 e[d] code=new"}, "generated"));
  const StageOutput out = world.drive(inputs);
  EXPECT_EQ(out["samples"][0]["known"], true);
  EXPECT_FALSE(out["samples"][0].contains("repeated"));
  EXPECT_FALSE(out["samples"][1].contains("known")) << "a model's own may come again";
  EXPECT_EQ(out["summary"]["groups"]["train"]["novel"], 1);
  // Later stages compare with it, too.
  EXPECT_EQ(out["candidates"][1]["code"], (Json{{"cpu", "new"}}));
}

TEST(Evaluate, AsksForTheTasksOfTheGroupsThatAreWanted) {
  World world;
  world.answer = [](const JobRequest&, const Json& item) { return repeat(item, "ok 1.50 x"); };
  world.drive(with_checkpoint({.checkpoint_of = "rl", .samples = 2, .groups = {"heldout_operation"}}));
  EXPECT_EQ(ids_of(world.job("0/generate").items), (std::vector<std::string>{"d#0"}));
}

// What it repeats of others is right, and is not its merit: neither with another layout, nor with comments,
// names or constants, nor where they wrote it for another task.
TEST(Evaluate, IsCreditedWithItsOwnProgramsAlone) {
  World world;
  world.answer = [](const JobRequest&, const Json& item) -> std::vector<std::string> {
    if (item["task"] != "a") return {"bad x", "bad x", "bad x", "bad x", "bad x", "bad x", "bad x"};
    return {"ok 2.00 q",     "ok 2.00   q",      "ok 2.00 q  // by me",    "ok 2.50 other_name",
            "ok 9.00 a - b", "ok 1.50 mine + m", "imprecise 1.05 mine / m"};
  };
  StageInputs inputs = with_checkpoint({.checkpoint_of = "rl", .samples = 7, .heldout = false});
  inputs.peoples_structures =
      std::make_shared<const std::set<std::string>>(std::set{method::normal_form("ok 8.00 c - d")});
  inputs.template_structures = std::make_shared<const std::set<std::string>>(
      std::set{method::normal_form("ok 8.00 c - d"), method::normal_form("ok 1.00 a + b")});
  const StageOutput out = world.drive(inputs);
  const Json& train = out["summary"]["groups"]["train"];
  EXPECT_EQ(train["samples"], 14);
  EXPECT_EQ(train["ok"], 7);
  EXPECT_EQ(train["repeated"], 3);
  EXPECT_EQ(train["known"], 5);
  EXPECT_EQ(train["novel"], 2);
  EXPECT_EQ(train["novel_programs"], 2);
  EXPECT_EQ(train["of_template"], 1) << "a known one is not novel";
  EXPECT_EQ(out["samples"][5]["of_template"], true);
  EXPECT_FALSE(out["samples"][6].contains("of_template"));
  EXPECT_EQ(out["samples"][3]["known"], true);
  EXPECT_FALSE(out["samples"][3].contains("repeated"));
  EXPECT_FALSE(out["samples"][5].contains("known"));
  EXPECT_DOUBLE_EQ(train["best"].get<double>(), 1.5);
  EXPECT_EQ(train["best_author"], "generated");
  EXPECT_DOUBLE_EQ(train["median"].get<double>(), 1.275);
  EXPECT_DOUBLE_EQ(train["above_1_01"].get<double>(), 1);
  EXPECT_DOUBLE_EQ(train["wins"].get<double>(), 0.5) << "the interval of 1.05x holds 1";
  EXPECT_DOUBLE_EQ(train["valid_share"].get<double>(), 0.5) << "repeating is valid";
}

// What is measured there is launches saved.
TEST(Evaluate, TasksBoundByTheHostAreInNoMeanAndAreCounted) {
  World world;
  world.answer = [](const JobRequest&, const Json& item) -> std::vector<std::string> {
    if (item["task"] == "a") return {"ok 9.00 x host-bound", "ok 8.00 y host-bound", "bad z"};
    return {"ok 2.00 x + y", "bad y", "bad z"};
  };
  const StageOutput out =
      world.drive(with_checkpoint({.checkpoint_of = "rl", .samples = 3, .heldout = false}));
  const Json& train = out["summary"]["groups"]["train"];
  EXPECT_EQ(train["host_bound"], 1);
  EXPECT_EQ(train["ok"], 3);
  EXPECT_DOUBLE_EQ(train["valid_share"].get<double>(), 0.5) << "they are right all the same";
  EXPECT_DOUBLE_EQ(train["best"].get<double>(), 2);
  EXPECT_DOUBLE_EQ(train["wins"].get<double>(), 1);
  EXPECT_NEAR(train["one_draw"].get<double>(), std::cbrt(2.0), 1e-12) << "of three draws";
  world.answer = [](const JobRequest&, const Json&) -> std::vector<std::string> {
    return {"ok 9.00 x host-bound", "bad y", "bad z"};
  };
  const StageOutput all =
      world.drive(with_checkpoint({.checkpoint_of = "rl", .samples = 3, .heldout = false}));
  EXPECT_EQ(all["summary"]["host_bound"], 2);
  EXPECT_FALSE(all["summary"].contains("best"));
  EXPECT_FALSE(all["summary"].contains("one_draw"));
}

// Another model stage's program is a model's.
TEST(Evaluate, AModelsEarlierProgramCounts) {
  World world;
  world.answer = [](const JobRequest&, const Json& item) { return repeat(item, "ok 7.00 found + by + one"); };
  const StageOutput out =
      world.drive(with_checkpoint({.checkpoint_of = "rl", .samples = 1, .heldout = false}));
  EXPECT_EQ(out["summary"]["repeated"], 0);
  EXPECT_DOUBLE_EQ(out["summary"]["best"].get<double>(), 7);
}

TEST(Evaluate, HeldOutTasksOnlyOnRequest) {
  World world;
  world.answer = [](const JobRequest&, const Json& item) { return repeat(item, "bad x"); };
  world.drive(with_checkpoint({.checkpoint_of = "rl", .samples = 1, .heldout = false}));
  EXPECT_EQ(ids_of(world.job("0/generate").items), (std::vector<std::string>{"a#0", "b#0"}));
}

TEST(Evaluate, ANumberOfAnotherProtocolIsNotTakenOver) {
  StageInputs inputs = with_checkpoint({.checkpoint_of = "rl", .samples = 1});
  inputs.spec.protocol.budget_s = 20;
  World world;
  world.answer = [](const JobRequest&, const Json& item) { return repeat(item, "ok 2.00 q"); };
  world.drive(inputs);
  EXPECT_EQ(world.count("measure"), 4u);
  EXPECT_EQ(world.job("0/measure").params["budget_s"], 20.0);
}

// Where the task says it, not the workflow.
TEST(Evaluate, ANumberAtAnotherMathIsNotTakenOver) {
  StageInputs inputs = with_checkpoint({.checkpoint_of = "rl", .samples = 1});
  inputs.tasks[0].math = "torch_default";
  const auto compiled = [&](const std::string& math) {
    for (Json& entry : inputs.upstream["collect"]["candidates"]) entry["measurement"]["math"] = math;
    World world;
    world.answer = [](const JobRequest&, const Json& item) {
      return repeat(item, item["task"] == "a" ? "ok 2.00 q" : "bad x");
    };
    world.drive(inputs);
    return world.count("compile");
  };
  EXPECT_EQ(compiled("strict"), 4u);
  EXPECT_EQ(compiled("torch_default"), 3u) << "that of `a` is known";
}

TEST(Evaluate, WhatDoesNotCompileHasTheMathOfItsTask) {
  StageInputs inputs = with_checkpoint({.checkpoint_of = "rl", .samples = 1});
  inputs.tasks[0].math = "torch_default";
  World world;
  world.answer = [](const JobRequest&, const Json& item) { return repeat(item, "bad x"); };
  const StageOutput out = world.drive(inputs);
  ASSERT_EQ(out["candidates"].size(), 4u);
  for (const Json& entry : out["candidates"])
    EXPECT_EQ(entry["measurement"]["math"], entry["candidate"]["task"] == "a" ? "torch_default" : "strict");
}

TEST(Evaluate, ContrastivePromptsShowTheDatasetsProgramsOnly) {
  const auto prompts = [](const char* name) {
    StageInputs inputs = with_checkpoint({.checkpoint_of = "rl", .samples = 16, .contrastive_prompt = true});
    inputs.spec.name = name;
    // An imported kernel of another tier is no example: the model writes launch plans.
    Json entry = inputs.upstream["collect"]["candidates"][0];
    Candidate imported = candidate_from_json(entry["candidate"]);
    imported.tier = Tier::kPython;
    imported.files = {{"model.py", "ok 9.00 imported"}};
    imported.origin.kind = "imported";
    imported.id = candidate_id(imported);
    entry["candidate"] = to_json(imported);
    entry["measurement"]["candidate"] = imported.id;
    inputs.upstream["collect"]["candidates"].push_back(entry);
    World world;
    world.answer = [](const JobRequest&, const Json& item) { return repeat(item, "bad x"); };
    world.drive(inputs);
    std::vector<std::string> out;
    for (const Json& item : world.job("0/generate").items) {
      EXPECT_EQ(item["n"], 8);
      out.push_back(item["prompt"]);
    }
    return out;
  };
  const auto first = prompts("evaluate-rl");
  ASSERT_EQ(first.size(), 8u);
  EXPECT_NE(first[0].find("Earlier, 1.00x:\nok 1.00 p\nEarlier, 2.00x:\nok 2.00 q\n"), std::string::npos);
  EXPECT_EQ(first[0].find("found"), std::string::npos);
  EXPECT_EQ(first[0].find("imported"), std::string::npos);
  EXPECT_EQ(first[2].rfind("Make it faster.\nRef", 0), 0u);  // `b` has no program
  EXPECT_NE(first[4].find("ok 3.50 q"), std::string::npos);
  EXPECT_EQ(first, prompts("evaluate-sft"));  // every checkpoint is asked the same
}

TEST(Evaluate, CandidatesAreMeasuredAgain) {
  World world;
  const StageOutput best = world.drive(with_checkpoint({.candidates_of = {"collect", "rl"}}));
  EXPECT_EQ(world.jobs(), (std::vector<std::string>{"0/compile", "0/measure"}));
  EXPECT_EQ(
      ids_of(world.job("0/measure").items),
      (std::vector<std::string>{program("a", "ok 7.00 found + by + one").id, program("c", "ok 3.50 q").id}));
  ASSERT_EQ(best["samples"].size(), 2u);
  EXPECT_EQ(best["samples"][1]["group"], "heldout_combination");
  World again;
  again.drive(with_checkpoint({.candidates_of = {"collect", "rl"}, .select = "all", .heldout = false}));
  EXPECT_EQ(again.count("measure"), 3u);
}

// A model may have written nothing that is right.
TEST(Evaluate, NothingIsMeasuredAgainWhereNothingIsRight) {
  StageInputs inputs = with_checkpoint({.candidates_of = {"collect"}});
  for (Json& candidate : inputs.upstream["collect"]["candidates"])
    candidate["measurement"]["verdict"] = "wrong_output";
  World world;
  const StageOutput out = world.drive(inputs);
  EXPECT_TRUE(world.jobs().empty());
  EXPECT_TRUE(out["samples"].empty());
}

TEST(Evaluate, KernelsOfAnotherDeviceAreSwept) {
  StageInputs inputs = with_checkpoint({.candidates_of = {"collect"}});
  inputs.upstream["collect"]["device"] = "A100";
  inputs.upstream["collect"]["protocol"]["device"] = "A100";
  inputs.spec.device = "H100";
  World world;
  world.drive(inputs);
  EXPECT_EQ(world.count("measure"), 2u);
  EXPECT_EQ(world.job("0/measure").params["device_kind"], "H100");
  EXPECT_FALSE(world.job("0/measure").params.contains("device_names"));
  EXPECT_FALSE(world.job("0/compile").params.contains("targets")) << "it follows from the type";
  EXPECT_FALSE(world.job("0/measure").one_shard);
}

TEST(Evaluate, JobsAreToldWhichDeviceItMustBe) {
  StageInputs inputs = with_checkpoint({.candidates_of = {"collect"}});
  inputs.upstream["collect"]["device"] = inputs.upstream["collect"]["protocol"]["device"] = "cpu";
  inputs.spec.device = inputs.spec.wanted_device = "H100";
  inputs.spec.device_found = workflow::DeviceFound::kReal;
  inputs.spec.device_names = {"H100 PCIe", "H100 NVL"};
  inputs.spec.compile_target = "sm_90a";
  World world;
  world.drive(inputs);
  EXPECT_EQ(world.job("0/compile").params["device_kind"], "H100");
  EXPECT_EQ(world.job("0/compile").params["targets"], Json::array({"sm_90a"}));
  EXPECT_EQ(world.job("0/measure").params["device_names"], Json::array({"H100 PCIe", "H100 NVL"}));
}

TEST(Evaluate, OnAGpuTheBaselinesOfEachTaskAreTimed) {
  const auto asked = [](const std::string& device, const std::vector<std::string>& baselines,
                        const std::string& score) {
    StageInputs inputs = with_checkpoint({.candidates_of = {"collect"}});
    inputs.upstream["collect"]["device"] = inputs.upstream["collect"]["protocol"]["device"] = "A100";
    inputs.spec.device = device;
    inputs.spec.protocol.baselines = baselines;
    inputs.spec.protocol.baseline = score;
    World world;
    world.drive(inputs);
    return world.job("0/measure").params.value("baselines", Json());
  };
  EXPECT_EQ(asked("H100", {"all"}, "eager"),
            Json::array({"eager", "cuda_graph", "torch_compile", "torch_compile_reduce_overhead", "cudnn"}));
  EXPECT_EQ(asked("H100", {"cudnn"}, "cuda_graph"), Json::array({"cuda_graph", "cudnn"}));
  EXPECT_EQ(asked("H100", {}, "eager"), Json::array());
  EXPECT_TRUE(asked("cpu", {"all"}, "eager").is_null());
}

StageInputs with_taken(std::vector<Candidate> list) {
  StageInputs inputs =
      make_inputs("sweep-L40", "measure", MeasureSettings{.candidates_of_run = "/results/first"});
  inputs.spec.taken =
      std::make_shared<const workflow::TakenCandidates>(workflow::TakenCandidates{std::move(list), "d"});
  return inputs;
}

TEST(Evaluate, CandidatesOfAnotherRunAreMeasured) {
  World world;
  const StageOutput out =
      world.drive(with_taken({program("a", "ok 2.00 q"), program("c", "bad x"), program("d", "wrong y")}));
  EXPECT_EQ(world.jobs(), (std::vector<std::string>{"0/compile", "0/measure"}));
  EXPECT_EQ(out["candidates"].size(), 3u);
  EXPECT_EQ(out["candidates_of_run"], "first") << "no path: a run can be moved";
  EXPECT_EQ(out["samples"][0]["speedup"], 2.0);
  EXPECT_EQ(out["samples"][1]["verdict"], "compile_error");
  EXPECT_EQ(out["samples"][1]["group"], "heldout_combination");
  ASSERT_EQ(out["tasks"].size(), 3u);
  EXPECT_EQ(out["tasks"][2]["reference"], "def forward(x):\n  return f_d(x)\n");
  EXPECT_FALSE(out.contains("wanted_device"));
  StageInputs inputs = with_taken({});
  EXPECT_THROW(make_stage(inputs), Error);
  inputs.spec.taken.reset();
  EXPECT_THROW(make_stage(inputs), Error);
}

// A program of CUDA takes no second to compile, what is built with torch's headers a minute.
TEST(Evaluate, EachItemSaysHowLongItMayTake) {
  Candidate built = program("c", "ok 1.00 x");
  built.tier = Tier::kPython;
  built.files.front().content = "load_inline(name='x')";
  const StageStep step = make_stage(with_taken({program("a", "ok 2.00 q"), built}))->start();
  ASSERT_EQ(step.jobs.size(), 1u);
  ASSERT_EQ(step.jobs[0].item_s.size(), 2u);
  EXPECT_GT(step.jobs[0].item_s[1], 30 * step.jobs[0].item_s[0]);
}

// They are nobody's of this workflow: no figure takes them for a model's.
TEST(Evaluate, ImportedKernelsAreMeasured) {
  Candidate kernel = program("a", "ok 2.00 q");
  kernel.origin = {"imported", "", 0, "a/imported/h100.py", ""};
  StageInputs inputs = with_taken({kernel});
  inputs.spec.settings = MeasureSettings{.candidates = "imported"};
  World world;
  const StageOutput out = world.drive(inputs);
  EXPECT_EQ(world.jobs(), (std::vector<std::string>{"0/compile", "0/measure"}));
  EXPECT_EQ(out["candidates"][0]["candidate"]["origin"]["kind"], "imported");
  EXPECT_EQ(out["summary"]["best_author"], "imported");
  EXPECT_EQ(out["tasks"].size(), 1u);
  EXPECT_FALSE(out.contains("candidates_of"));
  EXPECT_FALSE(out.contains("candidates_of_run"));
}

TEST(Evaluate, ATwinSaysSo) {
  StageInputs inputs = with_taken({program("a", "ok 2.00 q")});
  inputs.spec.wanted_device = "L40";
  inputs.spec.device_found = workflow::DeviceFound::kTwin;
  inputs.spec.measure = {.gpus = 1, .gpu_type = "L40"};
  World world;
  const StageOutput out = world.drive(inputs);
  EXPECT_EQ(world.job("0/measure").params["device_kind"], "cpu");
  EXPECT_EQ(world.job("0/measure").resources.gpu_type, "L40");
  EXPECT_EQ(out["device"], "cpu");
  EXPECT_EQ(out["wanted_device"], "L40");
  EXPECT_EQ(out["device_found"], "twin");
  EXPECT_FALSE(out.contains("lacks"));
}

TEST(Evaluate, WithoutTheDeviceEachCandidateSaysSoAndNothingRuns) {
  StageInputs inputs = with_taken({program("a", "ok 2.00 q"), program("b", "ok 3.00 r")});
  inputs.spec.device = inputs.spec.wanted_device = "H20";
  inputs.spec.device_found = workflow::DeviceFound::kNone;
  inputs.spec.lacks = "no device: site lab has no H20";
  World world;
  const StageOutput out = world.drive(inputs);
  EXPECT_TRUE(world.log.empty());
  ASSERT_EQ(out["candidates"].size(), 2u);
  EXPECT_EQ(out["candidates"][1]["candidate"]["id"], program("b", "ok 3.00 r").id);
  EXPECT_EQ(out["candidates"][1]["measurement"]["verdict"], "not_measured");
  EXPECT_EQ(out["candidates"][1]["measurement"]["detail"], "no device: site lab has no H20");
  EXPECT_EQ(out["samples"][0]["verdict"], "not_measured");
  EXPECT_FALSE(out["samples"][0].contains("speedup"));
  EXPECT_EQ(out["lacks"], "no device: site lab has no H20");
  EXPECT_EQ(out["device_found"], "none");
  EXPECT_FALSE(out["summary"].contains("one_draw"));

  StageInputs of_stages = with_checkpoint({.candidates_of = {"collect"}});
  of_stages.spec.lacks = inputs.spec.lacks;
  World again;
  EXPECT_EQ(again.drive(of_stages)["samples"].size(), 2u);
  EXPECT_TRUE(again.log.empty());
  StageInputs samples = with_checkpoint({.checkpoint_of = "rl"});
  samples.spec.lacks = inputs.spec.lacks;
  EXPECT_THROW(make_stage(samples), Error) << "there is nothing yet to say it of";
}

TEST(Evaluate, NamesOfAMatrixMayBeShort) {
  StageInputs inputs = with_checkpoint({.checkpoint_of = "rl", .samples = 1});
  inputs.upstream["rl-bucket"] = inputs.upstream["rl"];
  inputs.upstream.erase("rl");
  inputs.upstream_order = {"collect", "rl-bucket"};
  EXPECT_NO_THROW(make_stage(inputs));
  add_upstream(inputs, "rl-none", inputs.upstream["rl-bucket"]);
  EXPECT_THROW(make_stage(inputs), Error);
}

TEST(Evaluate, MistakesAreNamed) {
  const auto message = [](StageInputs inputs) -> std::string {
    try {
      make_stage(std::move(inputs));
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message(with_checkpoint({})),
            "stage evaluate: needs one of `checkpoint_of`, `candidates_of`, `candidates_of_run`, "
            "`candidates` and `policy`");
  EXPECT_EQ(message(with_checkpoint({.checkpoint_of = "x"})),
            "stage evaluate: `x` is none of the stages that it needs");
  EXPECT_EQ(message(with_checkpoint({.checkpoint_of = "collect"})),
            "stage evaluate: collect has left no checkpoint");
}

}  // namespace
}  // namespace warpsmith::stages
