// What a site makes of a stage's `device`, and the workflow of a sweep.
#include "warpsmith/workflow/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warpsmith/base/files.h"
#include "warpsmith/workflow/load.h"
#include "warpsmith/workflow/sweep.h"

namespace warpsmith::workflow {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

WorkflowSpec load(const std::string& text, const fs::path& folder = "/base") {
  LoadResult result = load_workflow_text(
      "schema: warpsmith.workflow/1\nname: w\ndataset: {folder: tasks, train: [add]}\n" + text, "w.yaml",
      {.overrides = {}, .seed = {}, .base_folder = folder, .check_files = false});
  if (!result.spec) throw InvalidInput(result.mistakes);
  return *result.spec;
}

SiteSpec lab() {
  SiteSpec site;
  site.name = "lab";
  site.gpus["H100"].gres = "gpu:h100";
  site.gpus["L40"].gres = "gpu:l40";
  site.gpus["L40"].twin = true;
  return site;
}

const std::string kSweep = R"(stages:
  - {name: c, kind: collect}
  - name: e
    kind: measure
    matrix: {gpu: [H100, L40, A100, cpu]}
    device: ${matrix.gpu}
    candidates_of: [c]
)";

TEST(Devices, ASiteHasThemOrHasTwinsOrLacksThem) {
  WorkflowSpec spec = load(kSweep);
  const SiteSpec site = lab();
  resolve_devices(spec, &site);
  std::vector<std::string> told;
  for (const StageSpec& s : spec.stages)
    told.push_back(s.name + ": " + s.wanted_device + " on " + s.device + ", " +
                   std::string(to_string(s.device_found)) + ", " + std::to_string(s.measure.gpus) + " " +
                   s.measure.gpu_type + " " + s.lacks + s.blocked);
  EXPECT_THAT(told, ElementsAre("c:  on cpu, , 0  ", "e-H100: H100 on H100, real, 1 H100 ",
                                "e-L40: L40 on cpu, twin, 1 L40 ",
                                "e-A100: A100 on A100, none, 1 A100 no device: site lab has no A100",
                                "e-cpu:  on cpu, , 0  "));
  const WorkflowSpec once = spec;
  resolve_devices(spec, nullptr);
  EXPECT_EQ(spec.stages[2].wanted_device, once.stages[2].wanted_device) << "it is looked at once";
}

TEST(Devices, ThisMachineLacksAll) {
  WorkflowSpec spec = load(kSweep);
  resolve_devices(spec, nullptr);
  for (const int i : {1, 2, 3})
    EXPECT_EQ(spec.stages[static_cast<std::size_t>(i)].device_found, DeviceFound::kNone) << i;
  EXPECT_EQ(spec.stages[1].lacks, "no device: this machine has no H100");
}

const GpuStocks kHere = {{"H100", {.count = 1, .target = "sm_90a", .names = {"NVIDIA H100 PCIe"}}},
                         {"L40", {.count = 2, .target = "sm_89", .names = {"NVIDIA L40"}}}};

std::string device_of(const StageSpec& s) {
  return s.name + ": " + s.wanted_device + " on " + s.device + ", " + std::string(to_string(s.device_found)) +
         ", " + std::to_string(s.measure.gpus) + " " + s.measure.gpu_type + " [" + s.compile_target + " " +
         (s.device_names.empty() ? "" : s.device_names.front()) + "] " + s.lacks + s.blocked;
}

TEST(Devices, ThisMachineHasThoseOfItsGpus) {
  WorkflowSpec spec = load(kSweep);
  EXPECT_TRUE(asks_for_gpus(spec));
  resolve_devices(spec, nullptr, kHere);
  std::vector<std::string> told;
  for (const StageSpec& s : spec.stages) told.push_back(device_of(s));
  EXPECT_THAT(
      told,
      ElementsAre("c:  on cpu, , 0  [ ] ", "e-H100: H100 on H100, real, 1 H100 [sm_90a NVIDIA H100 PCIe] ",
                  "e-L40: L40 on L40, real, 1 L40 [sm_89 NVIDIA L40] ",
                  "e-A100: A100 on A100, none, 1 A100 [ ] no device: this machine has no A100, it has 2 "
                  "L40, 1 H100",
                  "e-cpu:  on cpu, , 0  [ ] "));
}

TEST(Devices, ASiteSaysWhatItsGpusAreCalledAndCompiledFor) {
  WorkflowSpec spec = load("device: H100\nstages: [{name: c, kind: collect}]\n");
  SiteSpec site = lab();
  site.gpus["H100"].names = {"H100 PCIe", "H100 NVL"};
  site.gpus["H100"].target = "sm_90";
  resolve_devices(spec, &site, kHere);
  EXPECT_EQ(device_of(spec.stages[0]), "c: H100 on H100, real, 1 H100 [sm_90 H100 PCIe] ");
  EXPECT_EQ(spec.stages[0].device_names.size(), 2u);
}

// What `device: auto` becomes there, and why.
std::string auto_at(const SiteSpec* site, const GpuStocks& machine, const std::string& more = "") {
  WorkflowSpec spec = load("device: auto\n" + more + "stages: [{name: c, kind: collect}]\n");
  EXPECT_TRUE(asks_for_gpus(spec));
  resolve_devices(spec, site, machine);
  const StageSpec& stage = spec.stages[0];
  return device_of(stage) + (stage.auto_device.empty() ? "" : " (" + stage.auto_device + ")");
}

TEST(Devices, AutoIsAGpuWhereThereIsOne) {
  EXPECT_EQ(auto_at(nullptr, {}), "c:  on cpu, , 0  [ ]  (this machine has no GPU)");
  EXPECT_EQ(auto_at(nullptr, {{"L40", {.count = 2}}}),
            "c: L40 on L40, real, 1 L40 [ ]  (this machine has 2 L40)");
  EXPECT_EQ(auto_at(nullptr, kHere),
            "c: L40 on L40, real, 1 L40 [sm_89 NVIDIA L40]  (this machine has 2 L40, 1 H100, and the type "
            "with most "
            "GPUs is taken)");
  SiteSpec site = lab();
  EXPECT_EQ(auto_at(&site, kHere), "c: H100 on H100, real, 1 H100 [ ]  (site lab has H100 alone)")
      << "a twin is no GPU";
  site.gpus["H20"];
  EXPECT_EQ(auto_at(&site, {}),
            "c:  on auto, , 0  [ ] `device: auto`: site lab has H100, H20; choose one, as in `device: H100`");
  site.gpus.erase("H20");
  site.gpus["H100"].twin = true;
  EXPECT_EQ(auto_at(&site, kHere), "c:  on cpu, , 0  [ ]  (site lab has no GPU but twins)");
  site.gpus.clear();
  EXPECT_EQ(auto_at(&site, kHere), "c:  on cpu, , 0  [ ]  (site lab has no GPU)");
  EXPECT_EQ(auto_at(nullptr, {}, "measure: {baseline: cudnn}\n"),
            "c:  on cpu, , 0  [ ] `baseline: cudnn` is not to be had on device `cpu`, which `device: auto` "
            "is: this "
            "machine has no GPU (this machine has no GPU)");
  EXPECT_EQ(auto_at(nullptr, {{"L40", {.count = 1}}}, "measure: {baseline: cudnn}\n"),
            "c: L40 on L40, real, 1 L40 [ ]  (this machine has 1 L40)");
}

TEST(Devices, OnlyMeasureJobsHaveAGpuUnlessTheFileSaysMore) {
  const std::string stages = R"(stages:
  - {name: c, kind: collect}
  - {name: s, kind: sft, needs: c}
  - {name: r, kind: self_supervised, needs: s}
)";
  const auto asked = [&](const std::string& resources, const GpuStocks& machine) {
    WorkflowSpec spec = load("device: auto\n" + resources + stages);
    resolve_devices(spec, nullptr, machine);
    const StageSpec& r = spec.stages.back();
    std::string out;
    for (const StageJob& job : stage_jobs(r))
      out +=
          std::string(job.name) + " " + std::to_string(job.resources->gpus) + job.resources->gpu_type + ", ";
    return out + r.blocked;
  };
  const GpuStocks two = {{"L40", {.count = 2}}};
  EXPECT_EQ(asked("", two), "generate 0, compile 0, measure 1L40, train 0, ");
  EXPECT_EQ(asked("resources: {gpus: 1}\n", two), "generate 0, compile 0, measure 1L40, train 0, ")
      << "the other programs run on the CPU";
  EXPECT_EQ(asked("resources: {train: {gpus: 1}}\n", two),
            "generate 0, compile 0, measure 1L40, train 1L40, ");
  EXPECT_EQ(asked("resources: {generate: {gpus: 1}}\n", two),
            "generate 1L40, compile 0, measure 1L40, train 0, ");
  EXPECT_EQ(asked("resources: {generate: {gpus: 4}}\n", two),
            "generate 1L40, compile 0, measure 1L40, train 0, ")
      << "four shards of one";
}

TEST(Devices, GpusOfNoTypeAreOfAnyHereAndOfOneAtASite) {
  const std::string text = "stages: [{name: x, kind: command, argv: [\"true\"], resources: {gpus: 3}}]\n";
  const auto blocked = [&](const SiteSpec* site, const GpuStocks& machine) {
    WorkflowSpec spec = load(text);
    EXPECT_TRUE(asks_for_gpus(spec));
    resolve_devices(spec, site, machine);
    return spec.stages[0].blocked;
  };
  EXPECT_EQ(blocked(nullptr, kHere), "");
  EXPECT_EQ(
      blocked(nullptr, {}),
      "its train jobs ask for 3 GPUs, and this machine has no GPU; `--site` names a cluster that has one");
  SiteSpec site = lab();
  EXPECT_EQ(blocked(&site, {}),
            "its train jobs ask for 3 GPUs of any type, and site lab has several: give them a `gpu_type`");
  site.gpus["H100"].twin = true;
  EXPECT_EQ(blocked(&site, {}), "") << "twins are all the same";
  site.gpus.erase("L40");
  EXPECT_EQ(blocked(&site, {}), "");
  site.gpus.clear();
  EXPECT_EQ(blocked(&site, {}), "its train jobs ask for 3 GPUs, and site lab has none");
  WorkflowSpec none = load("stages: [{name: c, kind: collect}]\n");
  EXPECT_FALSE(asks_for_gpus(none));
}

TEST(Devices, AClusterHasNoSharedGpus) {
  const auto blocked = [&](const SiteSpec* site, const std::string& shares) {
    WorkflowSpec spec =
        load("device: L40\nresources: {shards_a_gpu: " + shares + "}\nstages: [{name: c, kind: collect}]\n");
    resolve_devices(spec, site, kHere);
    return spec.stages[0].blocked;
  };
  const SiteSpec site = lab();
  EXPECT_EQ(blocked(&site, "1"), "");
  EXPECT_EQ(blocked(&site, "4"),
            "4 of its measure jobs share a GPU (`shards_a_gpu`), and on a cluster each has its own");
  EXPECT_EQ(blocked(nullptr, "4"), "");
}

TEST(Devices, WhatWouldSampleOrTrainIsBlocked) {
  WorkflowSpec spec = load(R"(device: A100
stages:
  - {name: c, kind: collect}
  - {name: s, kind: sft, needs: c}
  - {name: e, kind: measure, needs: s}
  - {name: again, kind: measure, candidates_of: [c]}
  - {name: own, kind: command, argv: ["true"]}
)");
  const SiteSpec site = lab();
  resolve_devices(spec, &site);
  std::vector<std::string> blocked;
  for (const StageSpec& s : spec.stages)
    if (!s.blocked.empty()) blocked.push_back(s.name + ": " + s.blocked);
  EXPECT_THAT(blocked, ElementsAre("c: no device: site lab has no A100", "s: no device: site lab has no A100",
                                   "e: no device: site lab has no A100"));
}

TEST(Devices, ATwinHasOneBaseline) {
  WorkflowSpec spec = load(R"(device: L40
measure: {baseline: torch_compile}
stages:
  - {name: c, kind: collect}
  - {name: again, kind: measure, candidates_of: [c]}
)");
  const SiteSpec site = lab();
  resolve_devices(spec, &site);
  EXPECT_EQ(spec.stages[0].blocked, "the CPU twin has no baseline `torch_compile`");
  EXPECT_EQ(spec.stages[1].blocked, "");
  EXPECT_EQ(spec.stages[1].lacks, "the CPU twin has no baseline `torch_compile`");
}

TEST(Sweep, HasTheProtocolOfTheRun) {
  const fs::path base = fs::path(testing::TempDir()) / "warpsmith_sweep_test";
  for (const char* task : {"add", "mul", "gelu"}) {
    make_folders(base / "tas\"ks" / task);
    write_file_atomic(base / "tas\"ks" / task / "task.yaml", "");
  }
  const std::string text = R"(schema: warpsmith.workflow/1
name: w
seed: 9
dataset: {folder: 'tas"ks', train: [mul, add], heldout_operation: [gelu]}
measure: {target: 3%, budget: 600ms, variance_gate: 0.02, threads: 2, memory: 3GiB}
compile: {timeout: 90s}
resources: {cpus: 3, measure: {time: 30m, memory: 2GiB}}
stages:
  - {name: own, kind: command, argv: ["true"]}
  - {name: c, kind: collect, measure: {buckets: 5}}
)";
  const LoadResult run =
      load_workflow_text(text, "w.yaml", {.overrides = {}, .seed = {}, .base_folder = base});
  ASSERT_TRUE(run.spec);
  const StageSpec& like = *measuring_stage(*run.spec);
  EXPECT_EQ(like.name, "c");
  const std::string sweep =
      sweep_yaml({.name = "w-sweep", .run = "../w", .gpus = {"L40", "H20"}, .select = "all"}, like);
  const LoadResult made = load_workflow_text(
      sweep, "sweep.yaml", {.overrides = {}, .seed = {}, .base_folder = base / "results/w-sweep"});
  for (const Diagnostic& d : made.mistakes) ADD_FAILURE() << to_string(d) << "\n" << sweep;
  ASSERT_TRUE(made.spec);
  EXPECT_EQ(made.spec->name, "w-sweep");
  ASSERT_EQ(made.spec->stages.size(), 2u);
  const StageSpec& stage = made.spec->stages[1];
  EXPECT_EQ(stage.name, "sweep-H20");
  EXPECT_EQ(stage.device, "H20");
  EXPECT_EQ(stage.measure.gpus, 1);
  EXPECT_EQ(stage.seed, 9u);
  EXPECT_EQ(stage.dataset.folder, like.dataset.folder);
  EXPECT_EQ(stage.dataset.train, like.dataset.train);
  EXPECT_EQ(stage.dataset.heldout_operation, like.dataset.heldout_operation);
  EXPECT_EQ(stage.protocol.buckets, 5);
  EXPECT_DOUBLE_EQ(stage.protocol.target, 0.03);
  EXPECT_DOUBLE_EQ(stage.protocol.budget_s, 0.6);
  EXPECT_EQ(stage.protocol.memory_bytes, 3ull << 30);
  EXPECT_EQ(stage.protocol.threads, 2);
  EXPECT_DOUBLE_EQ(stage.compiler.timeout_s, 90);
  EXPECT_EQ(stage.compile.cpus, 3);
  EXPECT_DOUBLE_EQ(stage.measure.time_s, 1800);
  EXPECT_EQ(stage.measure.memory_bytes, 2ull << 30);
  const auto& settings = std::get<MeasureSettings>(stage.settings);
  EXPECT_EQ(settings.candidates_of_run, (base / "results/w").string());
  EXPECT_EQ(settings.select, "all");
  fs::remove_all(base);
}

// A budget of money means nothing where nobody says what tokens cost.
TEST(Devices, PricesAreTheSites) {
  StageSpec stage;
  stage.kind = "measure";
  stage.settings = MeasureSettings{};
  stage.policy.emplace().model = "coder";
  stage.policy->budget.money = 5;
  WorkflowSpec spec;
  spec.stages = {stage};
  SiteSpec site;
  site.name = "lab";
  site.prices.tokens["other"] = {.prompt = 1, .completion = 2};
  const auto resolved = [&](const SiteSpec* at) {
    WorkflowSpec copy = spec;
    resolve_devices(copy, at);
    return copy.stages[0];
  };
  EXPECT_EQ(resolved(nullptr).blocked,
            "`budget` has 5 of money, and no site file says what tokens cost; `--site` names one");
  EXPECT_EQ(resolved(&site).blocked,
            "`budget` has 5 of money, and `prices` of site lab says nothing of model `coder`");
  site.prices.tokens["coder"] = {.prompt = 0.5, .completion = 2};
  EXPECT_EQ(resolved(&site).blocked, "");
  EXPECT_EQ(resolved(&site).policy->prices, (TokenPrices{0.5, 2}));
  spec.stages[0].policy->budget.money = 0;
  EXPECT_EQ(resolved(nullptr).blocked, "");
}

}  // namespace
}  // namespace warpsmith::workflow
