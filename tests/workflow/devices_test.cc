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

}  // namespace
}  // namespace warpsmith::workflow
