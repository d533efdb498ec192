// GPUs of this machine, as the program itself deals with them: a library in place of NVML says which there
// are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/base/text.h"
#include "warpsmith/executor/last_words.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/records/measurement.h"
#include "with_variable.h"

namespace warpsmith {
namespace {

using testing::HasSubstr;
using testing::Not;

class GpuPlace : public testing::Test {
 protected:
  // The exit code of the program; what it printed lies in out_.
  int run(const std::string& arguments, const std::string& program = "warpsmith") {
    const std::string command = "cd '" + scratch_.path().string() + "' && '" WARPSMITH_BINARY_DIR "/" +
                                program + "' " + arguments + " >out.txt 2>&1 </dev/null";
    const int status = std::system(command.c_str());
    out_ = read_file(scratch_ / "out.txt");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  Json json(const std::string& arguments, const std::string& option = " --json") {
    EXPECT_EQ(run(arguments + option), kExitOk) << out_;
    return parse_json(out_, "its output");
  }
  void write_workflow(const std::string& text) const {
    write_file_atomic(scratch_ / "w.yaml", "schema: warpsmith.workflow/1\nname: w\n" + text);
  }
  // A run that has found one right program.
  void make_first_run() const {
    const fs::path stage = scratch_ / "results/first/stages/collect/11111111";
    make_folders(stage);
    write_file_atomic(scratch_ / "results/first/run.json", R"({"workflow_file": "first.yaml"})");
    const Candidate candidate = make_plan_candidate("gelu", "x", {"dataset", "collect", 0, "", ""});
    Measurement m;
    m.candidate = candidate.id;
    m.task = "gelu";
    m.baseline = "eager";
    m.verdict = Verdict::kOk;
    m.speedup = 2;
    write_file_atomic(stage / "output.json",
                      Json{{"stage", "collect"},
                           {"device", "cpu"},
                           {"candidates", {{{"candidate", to_json(candidate)}, {"measurement", to_json(m)}}}}}
                          .dump());
  }
  const std::string kDataset = "dataset: {folder: " WARPSMITH_SOURCE_DIR "/datasets, train: [gelu]}\n";

  const Scratch scratch_;
  const WithVariable library_{"WARPSMITH_NVML", WARPSMITH_BINARY_DIR "/tests/libfake_nvml.so"};
  std::string out_;
};

// Six shards of one GPU each on a machine with two.
const std::string kShards =
    "  - name: hold\n    kind: command\n    items: tasks\n    records: none\n    shard_time: 1s\n"
    "    argv: [/bin/sh, -c, 'echo \"$CUDA_VISIBLE_DEVICES\" >> gpus.txt; sleep 0.2']\n"
    "    resources: {gpus: 1, time: 10s}\n";
const std::string kTasks = "dataset: {folder: " WARPSMITH_SOURCE_DIR
                           "/datasets, train: [gelu, rms_norm, transpose, sum_all, square_row_sum]}\n";

TEST_F(GpuPlace, ShardsHaveGpusOfTheirOwnAndTheirHoursCount) {
  write_workflow(kTasks + "budget: {gpu_hours: 1}\nstages:\n" + kShards +
                 "  - {name: none, kind: command, records: none, argv: [/bin/sh, -c, 'echo "
                 "\"[$CUDA_VISIBLE_DEVICES]\" > none.txt']}\n");
  ASSERT_EQ(run("run w.yaml"), kExitOk) << out_;
  const std::vector<std::string> gpus = split_lines(read_file(scratch_ / "gpus.txt"));
  ASSERT_FALSE(gpus.empty());
  for (const std::string& gpu : gpus) EXPECT_THAT(gpu, testing::MatchesRegex("GPU-fake-[01]"));
  EXPECT_EQ(read_file(scratch_ / "none.txt"), "[]\n") << "who asks for none sees none";
  const double hours = json("status w").at("gpu_hours");
  EXPECT_GT(hours * 3600, 0.2);
  const Json stage = json("plan w.yaml --force hold").at("stages").at(0);
  EXPECT_NEAR(stage.at("cost").at("gpu_hours").get<double>(), hours, hours / 2) << "as learnt from that run";
  double reported = 0;
  const Json exported = json("export w", " --format json");
  for (const Json& row : exported.at("cost")) reported += row.value("gpu_hours", 0.0);
  EXPECT_NEAR(reported, hours, hours / 100);
}

// Two L40 of 45 GiB: some 8 billion parameters are 16 bytes each to train, and 2 to sample.
TEST_F(GpuPlace, AModelThatDoesNotFitIsToldBeforeAnythingStarts) {
  const std::string model =
      "model: {layers: 32, width: 4096, heads: 32, kv_heads: 8, hidden: 14336, vocabulary: 32000}\n"
      "optimizer: {batch_tokens: 4096, micro_batch_tokens: 1024";
  const std::string stages =
      "stages:\n  - {name: c, kind: collect}\n  - {name: s, kind: sft, needs: c, steps: 1}\n";
  const auto look = [&](const std::string& command, const std::string& more) {
    write_workflow(kDataset + model + more + "}\nresources: {train: {gpus: 1}}\n" + stages);
    (void)run(command + " w.yaml");
    return out_ = replaced(out_, "\n    ", " ");  // as it is before lines are broken
  };
  EXPECT_THAT(look("plan", ", states: gpu"),
              HasSubstr("cannot run: its model does not fit on a GPU of this machine: training takes 1"));
  EXPECT_THAT(out_, HasSubstr("and there are 45.0 GiB. `states: host`, `lora`"));
  EXPECT_EQ(run("run w.yaml"), kExitUsage) << out_;
  EXPECT_THAT(look("doctor", ", states: gpu"), HasSubstr("stage s                        cannot run here"));
  // Its optimiser's states need not lie there.
  EXPECT_THAT(look("plan", ""), HasSubstr("so a part of the optimiser's states lies on the host"));
  EXPECT_THAT(look("doctor", ""),
              HasSubstr("stage s                        so a part of the optimiser's states"));
  EXPECT_THAT(out_, HasSubstr("stage c                        has no model"));
  EXPECT_THAT(look("plan", ", states: host"), HasSubstr(", optimiser 2.2, "));
  write_workflow(kDataset + "optimizer: {batch_tokens: 4096}\nresources: {train: {gpus: 1}}\n" + stages);
  EXPECT_EQ(run("plan w.yaml"), kExitOk) << out_;
  out_ = replaced(out_, "\n    ", " ");
  EXPECT_THAT(out_, HasSubstr("on a GPU, training takes some 0.1 GiB: weights 0.0"));
  EXPECT_THAT(out_, HasSubstr(", of 45.0 GiB"));
}

TEST_F(GpuPlace, TheBudgetBinds) {
  write_workflow(kTasks + "budget: {gpu_hours: 0.001}\nstages:\n" + kShards);
  EXPECT_EQ(run("run w.yaml"), kExitFailed) << "3.6 s, and one may take 10";
  EXPECT_THAT(out_, HasSubstr("The budget is used up"));
}

TEST_F(GpuPlace, TheEnvironmentRestrictsWhatShardsGet) {
  const WithVariable visible("CUDA_VISIBLE_DEVICES", "1");
  write_workflow(kTasks + "stages:\n" + kShards);
  ASSERT_EQ(run("run w.yaml"), kExitOk) << out_;
  for (const std::string& gpu : split_lines(read_file(scratch_ / "gpus.txt"))) EXPECT_EQ(gpu, "GPU-fake-1");
  EXPECT_EQ(run("run w.yaml --set stages.hold.resources.gpus=2"), kExitUsage);
  EXPECT_THAT(out_, HasSubstr("its train jobs ask for 2 GPUs, and this machine has 1 L40"));
}

TEST_F(GpuPlace, AnotherTypeThanTheMachinesHasRowsThatSaySoAndNoNumber) {
  make_first_run();
  write_workflow(kDataset +
                 "stages: [{name: sweep, kind: measure, candidates_of_run: results/first, device: H100}]\n");
  ASSERT_EQ(run("plan w.yaml"), kExitOk) << out_;
  EXPECT_THAT(out_, HasSubstr("no device: this machine has no H100, it has 2 L40: its rows will say so"));
  ASSERT_EQ(run("run w.yaml"), kExitOk) << out_;
  const Json output = json("export w", " --format json");
  EXPECT_THAT(output.dump(), HasSubstr("no device: this machine has no H100"));
  EXPECT_FALSE(fs::exists(scratch_ / "results/w/cache/plan")) << "nothing was compiled for it";
  // What would sample or train there does not begin.
  write_workflow(kDataset + "device: H100\nstages: [{name: c, kind: collect}]\n");
  EXPECT_EQ(run("run w.yaml --run-dir other"), kExitUsage);
  EXPECT_THAT(out_,
              HasSubstr("stage c cannot run: no device: this machine has no H100, it has 2 L40; `--site`"));
}

TEST_F(GpuPlace, PlanAndRunSayWhatAutoIs) {
  write_workflow(kDataset +
                 "device: auto\nstages: [{name: c, kind: command, records: none, argv: [\"true\"]}]\n");
  Json stage = json("plan w.yaml").at("stages").at(0);
  EXPECT_EQ(stage.at("device"), "L40");
  EXPECT_EQ(stage.at("device_found"), "real");
  EXPECT_EQ(stage.at("auto_device"), "this machine has 2 L40");
  ASSERT_EQ(run("plan w.yaml"), kExitOk);
  EXPECT_THAT(out_, HasSubstr("\nc: on L40, by `device: auto`: this machine has 2 L40\n"));
  ASSERT_EQ(run("run w.yaml"), kExitOk) << out_;
  EXPECT_THAT(out_, HasSubstr("`device: auto` is L40: this machine has 2 L40"));
  EXPECT_THAT(read_file(scratch_ / "results/w/state.json"), Not(HasSubstr("\"auto\"")));
  const WithVariable none("WARPSMITH_NVML", "");
  ASSERT_EQ(run("plan w.yaml"), kExitOk);
  EXPECT_THAT(out_, HasSubstr("\nc: on cpu, by `device: auto`: this machine has no GPU\n"));
  EXPECT_THAT(out_, HasSubstr("device: L40 -> cpu"));
}

// What a node of a cluster does with a shard that was sent to the wrong one.
TEST_F(GpuPlace, AShardOnTheWrongGpuFailsWithThatReason) {
  const fs::path ends = executor::ends_folder(scratch_ / "job.json");
  make_folders(ends);
  const auto end_of = [&](const std::string& names, const std::string& token) {
    run("--token " + token + " --base 0 --ends " + ends.string() + names + " -- /bin/true " +
            (scratch_ / "job.json").string(),
        "warpsmith-shard");
    const Json word = executor::find_last_word(ends, token, 0);
    return word.value("cause", "") + ": " + word.value("detail", "");
  };
  EXPECT_THAT(end_of(" --gpu-name H100", "a"),
              testing::StartsWith("launch_failure: wrong GPU: NVIDIA L40 on "));
  EXPECT_EQ(end_of(" --gpu-name H100 --gpu-name L40", "b"), "finished: ");
  const WithVariable mixed("FAKE_GPUS", "NVIDIA L40 8.9;NVIDIA H100 PCIe 9.0");
  EXPECT_THAT(end_of(" --gpu-name H100", "c"),
              testing::StartsWith("launch_failure: wrong GPU: NVIDIA L40 on "));
  const WithVariable visible("CUDA_VISIBLE_DEVICES", "1");
  EXPECT_EQ(end_of(" --gpu-name H100", "d"), "finished: ") << "its own is the right one";
  const WithVariable broken("FAKE_GPUS", "broken");
  EXPECT_THAT(end_of(" --gpu-name H100", "e"),
              testing::StartsWith("launch_failure: this node shows no GPU (NVML: Driver Not Loaded) on "));
}

// The same on this machine, where the program itself finds it out.
TEST_F(GpuPlace, AProgramThatFindsAnotherGpuFailsWithItsReason) {
  write_workflow(
      "stages:\n  - name: own\n    kind: command\n    records: none\n    resources: {gpus: 1}\n"
      "    retry: {launch_failure: 1}\n"
      "    argv: [/bin/sh, -c, 'echo begin; echo \"wrong GPU: NVIDIA L40 is no H100\" >&2; exit 5']\n");
  EXPECT_EQ(run("run w.yaml"), kExitFailed);
  const Json shard = json("why own --run w").at("shards").at(0);
  EXPECT_EQ(shard.at("cause"), "launch_failure");
  EXPECT_EQ(shard.at("attempts"), 2);
  EXPECT_EQ(shard.at("exit_code"), kExitWrongDevice);
  EXPECT_EQ(shard.at("detail"), "wrong GPU: NVIDIA L40 is no H100");
}

TEST_F(GpuPlace, DoctorListsThem) {
  run("doctor");
  EXPECT_THAT(out_,
              HasSubstr("L40: NVIDIA L40, 45.0 GiB, capability 8.9 (sm_89), driver 570.86.15, GPU-fake-1"));
}

}  // namespace
}  // namespace warpsmith
