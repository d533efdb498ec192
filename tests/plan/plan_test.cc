#include "warpsmith/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warpsmith/base/files.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/workflow/devices.h"
#include "warpsmith/workflow/load.h"

namespace warpsmith::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using workflow::WorkflowSpec;

WorkflowSpec load(const std::string& stages, const std::vector<std::string>& overrides = {}) {
  const std::string text =
      "schema: warpsmith.workflow/1\nname: w\ndataset: {folder: tasks, train: [add]}\n"
      "params: {steps: 10, rate: 0.1}\n" +
      stages;
  auto result = workflow::load_workflow_text(
      text, "w.yaml", {.overrides = overrides, .seed = {}, .base_folder = "/base", .check_files = false});
  if (!result.spec) throw InvalidInput(result.mistakes);
  return *result.spec;
}

const std::string kChain = R"(stages:
  - {name: c, kind: collect}
  - {name: s, kind: sft, needs: c, steps: "${params.steps}", optimizer: {learning_rate: "${params.rate}"}}
  - {name: e, kind: measure, needs: s}
)";

Digests digests(const std::string& task = "t1", const std::string& candidates = "k1") {
  return {{"/base/tasks", {{{"add", task}}, {{"add", candidates}}, {{"add", task}}}}};
}

// Runs what the plan says will run: each output's digest is that of `content` (by stage; else of its name).
void run(const WorkflowSpec& spec, const Digests& digests, History& history,
         const std::map<std::string, std::string>& content = {}) {
  std::map<std::string, std::string> outputs;
  for (const auto& stage : spec.stages) {
    const StagePlan plan = plan_stage(stage, digests.at(stage.dataset.folder), outputs, history[stage.name]);
    if (plan.action == Action::kUpToDate || stage.kind == "service") {  // a service leaves nothing
      outputs[stage.name] = plan.output_digest;
      continue;
    }
    const auto it = content.find(stage.name);
    outputs[stage.name] = sha256_hex(it == content.end() ? stage.name : it->second);
    auto& former = history[stage.name];
    std::erase_if(former, [&](const FormerResult& r) { return r.hash == plan.hash; });
    former.insert(former.begin(), {plan.hash, plan.inputs, true, outputs[stage.name], {}});
  }
}

std::vector<std::string> told(const std::vector<StagePlan>& plans) {
  std::vector<std::string> lines;
  for (const StagePlan& p : plans)
    lines.push_back(p.stage + ": " + std::string(to_string(p.action)) + ": " + p.reason);
  return lines;
}

TEST(Plan, NeverRun) {
  const auto spec = load(kChain);
  EXPECT_THAT(told(plan_stages(spec, digests(), {})),
              ElementsAre("c: run: never run", "s: run: never run", "e: run: never run"));
}

TEST(Plan, UpToDateAfterARun) {
  const auto spec = load(kChain);
  History history;
  run(spec, digests(), history);
  EXPECT_THAT(
      told(plan_stages(spec, digests(), history)),
      ElementsAre("c: up to date: up to date", "s: up to date: up to date", "e: up to date: up to date"));
}

TEST(Plan, NamesWhatChangedOldAndNew) {
  History history;
  run(load(kChain), digests(), history);
  const auto changed = load(kChain, {"params.rate=0.2", "params.steps=20"});
  EXPECT_THAT(
      told(plan_stages(changed, digests(), history)),
      ElementsAre("c: up to date: up to date", "s: run: optimizer.learning_rate: 0.1 -> 0.2; steps: 10 -> 20",
                  "e: depends: needs s, which will run; skipped if its output comes out as before"));
}

TEST(Plan, WhatNeedsARerunStageIsSkippedIfItsOutputIsEqual) {
  History history;
  run(load(kChain), digests(), history);
  const auto changed = load(kChain, {"params.steps=20"});
  run(changed, digests(), history);  // the output of s comes out as before
  EXPECT_EQ(history["s"].size(), 2u);
  EXPECT_EQ(history["e"].size(), 1u);
  run(load(kChain, {"params.steps=30"}), digests(), history, {{"s", "another"}});
  EXPECT_EQ(history["e"].size(), 2u);
  const auto changes = differences(history["e"][1].inputs, history["e"][0].inputs);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].path, "upstream.s");
}

TEST(Plan, AnOlderResultIsFoundAgain) {
  History history;
  run(load(kChain), digests(), history);
  run(load(kChain, {"params.steps=20"}), digests(), history);
  EXPECT_EQ(plan_stages(load(kChain), digests(), history)[1].action, Action::kUpToDate);
}

TEST(Plan, FilesOfTasksAndCandidatesCount) {
  History history;
  const auto spec = load(kChain);
  run(spec, digests(), history);
  const auto task = plan_stages(spec, digests("t2"), history);
  EXPECT_EQ(task[0].reason, "task file of add: t1 -> t2");
  EXPECT_EQ(task[2].reason, "task file of add: t1 -> t2");  // it measures
  const auto candidates = plan_stages(spec, digests("t1", "k2"), history);
  EXPECT_EQ(candidates[0].reason, "candidate files of add: k1 -> k2");
  EXPECT_EQ(candidates[1].action, Action::kDepends);
}

TEST(Plan, WhatDoesNotMatterDoesNotCount) {
  History history;
  run(load(kChain), digests(), history);
  const auto spec =
      load(kChain, {"resources.time=3h", "resources.memory=9GiB", "retry.crash=9", "tolerate=50%",
                    "max_jobs=2", "shard_time=5m", "optimizer.keep_last=9", "notify.on_end=echo"});
  for (const StagePlan& p : plan_stages(spec, digests(), history))
    EXPECT_EQ(p.action, Action::kUpToDate) << p.stage << ": " << p.reason;
}

TEST(Plan, ThreadsDeviceAndSeedCount) {
  History history;
  run(load(kChain), digests(), history);
  EXPECT_EQ(plan_stages(load(kChain, {"resources.train.cpus=2"}), digests(), history)[1].reason,
            "threads.train: 1 -> 2");
  EXPECT_EQ(plan_stages(load(kChain, {"stages.c.device=H100"}), digests(), history)[0].reason,
            "device: cpu -> H100");
  EXPECT_EQ(plan_stages(load(kChain, {"stages.s.seed=5"}), digests(), history)[1].reason, "seed: 1 -> 5");
}

workflow::SiteSpec site_with(const std::string& gpu, bool twin) {
  workflow::SiteSpec site;
  site.name = "lab";
  site.gpus[gpu].twin = twin;
  return site;
}

// Answers were paid for: what a server's model does not know of must not buy them again.
TEST(Plan, OfAServedModelsStageNothingOfOurOwnModelCounts) {
  const std::string stages = R"(
model: {context: 2048}
stages:
  - {name: c, kind: collect}
  - {name: e, kind: contrastive, needs: c, policy: {endpoint: {url: "http://x/v1", model: m}}}
)";
  const auto spec = load(stages);
  History history;
  run(spec, digests(), history);
  for (const char* ours :
       {"optimizer.learning_rate=0.5", "lora.rank=4", "sample.type=bfloat16", "sample.wave=8",
        "model.layers=6", "model.context=4096", "resources.train.cpus=7", "resources.generate.cpus=7"})
    EXPECT_EQ(plan_stages(load(stages, {ours}), digests(), history)[1].action, Action::kUpToDate) << ours;
  EXPECT_EQ(plan_stages(load(stages, {"sample.temperature=0.5"}), digests(), history)[1].action,
            Action::kRun);
  const std::vector<std::string> programs = programs_of(spec.stages[1]);
  EXPECT_EQ(std::count(programs.begin(), programs.end(), "warpsmith-train"), 0);
}

TEST(Plan, AServiceRunsForThoseWhoAskIt) {
  const auto spec = load(R"(stages:
  - {name: c, kind: collect}
  - {name: s, kind: sft, needs: c}
  - {name: server, kind: service, argv: [serve, "{port}"], needs: s}
  - {name: m, kind: measure, policy: {endpoint: {service: server, model: m}}}
)");
  EXPECT_THAT(told(plan_stages(spec, digests(), {})), ElementsAre("c: run: never run", "s: run: never run",
                                                                  "server: run: for m", "m: run: never run"));
  EXPECT_THAT(told(plan_stages(spec, digests(), {}, {.until = {"c"}})),
              ElementsAre("c: run: never run", "s: not selected: not selected, and never run",
                          "server: up to date: nobody who runs asks it",
                          "m: not selected: not selected, and never run"));
  History history;
  run(spec, digests(), history);
  EXPECT_EQ(told(plan_stages(spec, digests(), history))[2], "server: up to date: nobody who runs asks it");
  EXPECT_EQ(plan_stages(spec, digests(), {}, {.only = {"m"}})[3].action, Action::kBlocked);
}

TEST(Plan, TeachersAreAskedByWarpsmithGenerate) {
  const auto spec = load(R"(stages:
  - {name: c, kind: collect}
  - {name: t, kind: collect, teachers: [{model: m, url: "http://x/v1"}]}
)");
  const auto asks = [&](std::size_t stage) {
    const std::vector<std::string> programs = programs_of(spec.stages[stage]);
    return std::count(programs.begin(), programs.end(), "warpsmith-generate");
  };
  EXPECT_EQ(asks(0), 0);
  EXPECT_EQ(asks(1), 1);
}

TEST(Plan, WhatThereIsOfADeviceCounts) {
  const std::string text =
      "stages:\n  - {name: c, kind: collect}\n"
      "  - {name: e, kind: measure, candidates_of: [c], device: H100}\n";
  const workflow::SiteSpec twin = site_with("H100", true), real = site_with("H100", false);
  WorkflowSpec without = load(text), with_twin = load(text), with_gpu = load(text);
  workflow::resolve_devices(without, nullptr);
  workflow::resolve_devices(with_twin, &twin);
  workflow::resolve_devices(with_gpu, &real);
  History history;
  run(without, digests(), history);
  EXPECT_EQ(plan_stages(without, digests(), history)[1].action, Action::kUpToDate);
  EXPECT_EQ(plan_stages(with_twin, digests(), history)[1].reason, "the device found: none -> twin");
  EXPECT_EQ(plan_stages(with_twin, digests(), history)[0].action, Action::kUpToDate)
      << "it was cpu all along";
  run(with_twin, digests(), history);
  EXPECT_EQ(plan_stages(with_gpu, digests(), history)[1].reason, "the device found: twin -> real");
  EXPECT_EQ(plan_stages(without, digests(), history)[1].action, Action::kUpToDate)
      << "each keeps its own result";
  EXPECT_EQ(stage_inputs(with_twin.stages[1], digests().at("/base/tasks"), {{"c", "x"}}).at("device"),
            "H100");
}

TEST(Plan, AutoCountsAsWhatItBecomes) {
  const std::string text =
      "stages:\n  - {name: c, kind: collect}\n"
      "  - {name: e, kind: measure, candidates_of: [c], device: DEVICE}\n";
  const auto inputs = [&](const std::string& device, const workflow::GpuStocks& machine) {
    std::string said = text;
    said.replace(said.find("DEVICE"), 6, device);
    WorkflowSpec spec = load(said);
    workflow::resolve_devices(spec, nullptr, machine);
    return stage_inputs(spec.stages[1], digests().at("/base/tasks"), {{"c", "x"}});
  };
  const workflow::GpuStocks l40 = {{"L40", {.count = 1}}};
  EXPECT_EQ(inputs("auto", l40), inputs("L40", l40));
  EXPECT_EQ(inputs("auto", l40).at("device_found"), "real");
  EXPECT_EQ(inputs("auto", {}), inputs("cpu", {}));
  EXPECT_EQ(inputs("auto", {}), inputs("cpu", l40));
  EXPECT_EQ(inputs("auto", l40).at("device"), "L40");
}

TEST(Plan, AStageWhoseDeviceIsLackingCannotRun) {
  WorkflowSpec spec = load(kChain, {"stages.c.device=H100"});
  workflow::resolve_devices(spec, nullptr);
  EXPECT_THAT(
      told(plan_stages(spec, digests(), {})),
      ElementsAre("c: blocked: no device: this machine has no H100; `--site` names a cluster that has one",
                  "s: blocked: needs c, which cannot run", "e: blocked: needs s, which cannot run"));
  EXPECT_EQ(
      plan_stages(spec, digests(), {}, {.from = {}, .only = {"e"}, .until = {}, .force = {}, .accept = {}})[0]
          .action,
      Action::kNotSelected);
}

TEST(Plan, ABehaviourVersionCounts) {
  History history;
  const auto spec = load(kChain);
  run(spec, digests(), history);
  history["s"][0].inputs["versions"]["warpsmith-train"] = 0;
  history["s"][0].hash = hash_inputs(history["s"][0].inputs);
  EXPECT_EQ(plan_stages(spec, digests(), history)[1].reason, "behaviour of warpsmith-train: 0 -> 5");
}

TEST(Plan, UnfinishedGoesOn) {
  const auto spec = load(kChain);
  History history;
  const StagePlan first = plan_stages(spec, digests(), {})[0];
  history["c"] = {{first.hash, first.inputs, false, "", {}}};
  EXPECT_EQ(told(plan_stages(spec, digests(), history))[0], "c: resume: begun and not finished: goes on");
}

TEST(Plan, ForceAndAccept) {
  History history;
  run(load(kChain), digests(), history);
  const auto forced = plan_stages(load(kChain), digests(), history,
                                  {.from = {}, .only = {}, .until = {}, .force = {"s"}, .accept = {}});
  EXPECT_THAT(told(forced),
              ElementsAre("c: up to date: up to date", "s: run: forced",
                          "e: depends: needs s, which will run; skipped if its output comes out as before"));

  const auto changed = load(kChain, {"params.steps=20"});
  const auto accepted = plan_stages(changed, digests(), history,
                                    {.from = {}, .only = {}, .until = {}, .force = {}, .accept = {"s"}});
  EXPECT_THAT(told(accepted), ElementsAre("c: up to date: up to date", "s: accept: accepted as up to date",
                                          "e: up to date: up to date"));
  history["s"][0].accepted_as.insert(accepted[1].hash);
  EXPECT_EQ(plan_stages(changed, digests(), history)[1].reason, "up to date: an older result was accepted");
}

TEST(Plan, SelectionsLeaveTheRestAsItIs) {
  const auto spec = load(kChain);
  const auto only =
      plan_stages(spec, digests(), {}, {.from = {}, .only = {"s"}, .until = {}, .force = {}, .accept = {}});
  EXPECT_THAT(told(only), ElementsAre("c: not selected: not selected, and never run",
                                      "s: blocked: needs c, which is not selected and has no result",
                                      "e: not selected: not selected, and never run"));
  History history;
  run(spec, digests(), history);
  const auto changed = load(kChain, {"params.steps=20", "stages.c.augment.variants=3"});
  const auto from = plan_stages(changed, digests(), history,
                                {.from = {"s"}, .only = {}, .until = {"s"}, .force = {}, .accept = {}});
  EXPECT_EQ(from[0].action, Action::kNotSelected);
  EXPECT_EQ(from[0].output_digest, history["c"][0].output_digest);
  EXPECT_EQ(from[1].action, Action::kRun);
  EXPECT_EQ(from[2].action, Action::kNotSelected);
}

TEST(Plan, SelectionsNameInstancesOrBaseNames) {
  const auto spec =
      load("stages:\n  - {name: c, kind: collect, matrix: {k: [1, 2]}}\n  - {name: d, kind: collect}\n");
  EXPECT_THAT(instances(spec, "c"), ElementsAre("c-1", "c-2"));
  EXPECT_THAT(instances(spec, "c-2"), ElementsAre("c-2"));
  EXPECT_THAT(check_selection(spec, {.from = {"c"}, .only = {"c-1"}, .until = {}, .force = {}, .accept = {}}),
              IsEmpty());
  const Diagnostics mistakes =
      check_selection(spec, {.from = {}, .only = {"c-3"}, .until = {}, .force = {}, .accept = {}});
  ASSERT_EQ(mistakes.size(), 1u);
  EXPECT_THAT(to_string(mistakes[0]), HasSubstr("--only: there is no stage `c-3` (did you mean `c-1`?)"));
}

TEST(Inputs, DatasetDigestsFollowContents) {
  const fs::path folder = fs::path(testing::TempDir()) / "warpsmith_plan_test";
  fs::remove_all(folder);
  make_folders(folder / "add/candidates/ok");
  write_file_atomic(folder / "add/task.yaml", "a");
  write_file_atomic(folder / "add/candidates/ok/one.cu", "1");
  const auto before = digest_dataset(folder);
  EXPECT_EQ(before.tasks.at("add"), sha256_hex("a"));
  fs::rename(folder / "add/candidates/ok/one.cu", folder / "add/candidates/ok/two.cu");
  const auto renamed = digest_dataset(folder);
  EXPECT_NE(renamed.candidates.at("add"), before.candidates.at("add"));
  EXPECT_EQ(renamed.tasks, before.tasks);
}

// A CPU's stages do not become stale by the shapes of GPUs.
TEST(Inputs, ShapesOfGpusAreHashedForGpusAlone) {
  const fs::path folder = fs::path(testing::TempDir()) / "warpsmith_plan_shapes_test";
  fs::remove_all(folder);
  make_folders(folder / "add");
  const auto hashes = [&](const std::string& gpu) {
    write_file_atomic(folder / "add/task.yaml",
                      "schema: warpsmith.task/1\ntitle: T\nlevel: 1\nsplit: train\nops: [a]\ndims: [N]\n"
                      "inputs: {x: {shape: [N]}}\noutputs: {out: {shape: [N]}}\n"
                      "reference: |\n  def forward(x: Tensor) -> Tensor:\n    return x\n"
                      "timing: {cpu: [{N: 8}], gpu: [{N: " +
                          gpu + "}]}\nhidden: [{N: 1}]\n");
    std::map<std::string, std::string> by_device;
    for (const char* device : {"cpu", "H100"}) {
      auto spec = load("stages:\n  - {name: c, kind: collect}\n");
      spec.stages[0].dataset.folder = folder;
      spec.stages[0].dataset.train = {"add"};
      spec.stages[0].device = device;
      by_device[device] = hash_inputs(stage_inputs(spec.stages[0], digest_dataset(folder), {}));
    }
    return by_device;
  };
  auto before = hashes("4096"), after = hashes("8192");
  EXPECT_EQ(before["cpu"], after["cpu"]);
  EXPECT_NE(before["H100"], after["H100"]);
}

TEST(Inputs, FileHoldsWhatIsHashed) {
  const auto spec = load(kChain);
  const Json inputs = stage_inputs(spec.stages[0], digests().at("/base/tasks"), {});
  const Json file = inputs_file(spec.stages[0], inputs);
  EXPECT_EQ(file.at("hash"), hash_inputs(file.at("inputs")));
  EXPECT_THROW(stage_inputs(spec.stages[1], digests().at("/base/tasks"), {}),
               Error);  // c's output is not known
}

TEST(Inputs, EveryProgramHasAVersion) {
  for (const auto& stage : load(kChain).stages)
    for (const std::string& program : programs_of(stage)) EXPECT_GT(behaviour_version(program), 0) << program;
  EXPECT_EQ(behaviour_version("other"), 0);
}

}  // namespace
}  // namespace warpsmith::plan
