// `warpsmith import kernelbench`, the whole command: modules of KernelBench's form become tasks that can be
// measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/process/child.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/python/folders.h"
#include "warpsmith/python/interpreter.h"
#include "warpsmith/task/task.h"

namespace warpsmith {
namespace {

using ::testing::HasSubstr;

// A module whose forward(x) does `body`; `made` in its constructor.
std::string module_of(const std::string& body, const std::string& made = "pass",
                      const std::string& inputs = "[torch.rand(batch, width)]") {
  return "import torch\nimport torch.nn as nn\n\nbatch = 64\nwidth = 48\n\n"
         "class Model(nn.Module):\n    def __init__(self, features):\n        super().__init__()\n        " +
         made + "\n\n    def forward(self, x):\n        " + body + "\n\ndef get_inputs():\n    return " +
         inputs + "\n\ndef get_init_inputs():\n    return [width]\n";
}

class Import : public testing::Test {
 protected:
  void SetUp() override {
    const std::optional<fs::path> python = python::find_python();
    if (!python || !python::ask_python(*python, "import torch\nprint(1)"))
      GTEST_SKIP() << "there is no python3 with torch here";
    make_folders(scratch_.path() / "checkout/KernelBench/level1");
    make_folders(scratch_.path() / "checkout/KernelBench/level2");
  }
  void add(const std::string& path, const std::string& text) {
    write_file_atomic(scratch_.path() / "checkout/KernelBench" / path, text);
  }
  process::ChildResult warpsmith(std::vector<std::string> arguments) {
    process::ChildSpec spec;
    spec.argv = {(program_folder().parent_path() / "warpsmith").string()};
    spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
    spec.folder = scratch_.path();
    spec.sandbox.allow_processes = true;
    spec.limits.wall_s = 280;
    return process::run_child(spec);
  }
  Json imported(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"import", "kernelbench", "checkout", "--into", "tasks", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const process::ChildResult result = warpsmith(arguments);
    err_ = result.err;
    exit_code_ = result.exit_code;
    return Json::parse(result.out, nullptr, false);
  }
  task::Task loaded(const std::string& id) {
    Diagnostics mistakes;
    std::optional<task::Task> task = task::load_task(scratch_.path() / "tasks" / id, mistakes);
    if (!task) throw InvalidInput(mistakes);
    return std::move(*task);
  }
  Scratch scratch_;
  std::string err_;
  int exit_code_ = 0;
};

constexpr const char* kDoubled =
    R"(// plan: launch doubled<<<cdiv(BATCH * 48, 128), 128>>>(x, out, BATCH * 48)
extern "C" __global__ void doubled(const float* x, float* out, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i];
}
)";

TEST_F(Import, AModuleBecomesATaskThatAKernelIsMeasuredOn) {
  add("level1/3_Doubled_.py", module_of("return x * 2"));
  add("level1/notes.txt", "no task");
  const Json answer = imported({"--level", "1"});
  ASSERT_EQ(exit_code_, kExitOk) << err_;
  EXPECT_EQ(answer.at("imported"), Json({"level1_3_Doubled"}));
  const task::Task task = loaded("level1_3_Doubled");
  EXPECT_EQ(task.title, "Doubled");
  EXPECT_EQ(task.math, "torch_default");
  EXPECT_EQ(task.timing.front().at("BATCH"), 64);
  EXPECT_EQ(task::to_string(task.inputs.at(0).values), "uniform(0, 1)");
  ASSERT_EQ(task.distributions.size(), 1u);
  EXPECT_EQ(task::to_string(task.distributions.at(0).at("x")), "normal(0, 1)");
  EXPECT_TRUE(path_exists(scratch_.path() / "tasks/level1_3_Doubled/reference.py"));
  write_file_atomic(scratch_.path() / "mine.cu", kDoubled);
  const process::ChildResult bench =
      warpsmith({"bench", "tasks/level1_3_Doubled", "mine.cu", "--device", "cpu", "--verdicts-only"});
  EXPECT_EQ(bench.exit_code, kExitOk) << bench.out << bench.err;
  EXPECT_THAT(bench.out, HasSubstr("mine.cu  ok"));
  // The rules for folders of our own tasks do not hold for it: it has one candidate, in no folder.
  const process::ChildResult folder = warpsmith({"validate", "tasks"});
  EXPECT_EQ(folder.exit_code, kExitOk) << folder.out << folder.err;
  // What is there already stays.
  const Json again = imported({"--level", "1"});
  EXPECT_EQ(again.at("there_already"), Json({"level1_3_Doubled"}));
  EXPECT_TRUE(again.at("imported").empty());
}

TEST_F(Import, ParametersFollowTheInputsAndABatchNormTrains) {
  add("level2/1_Chain.py",
      module_of("return torch.relu_(self.norm(self.linear(x)))",
                "self.linear = nn.Linear(features, 24, bias=False); self.norm = nn.BatchNorm1d(24)"));
  const Json answer = imported({"--level", "2"});
  ASSERT_EQ(exit_code_, kExitOk) << err_;
  const task::Task task = loaded("level2_1_Chain");
  std::vector<std::string> names;
  for (const task::TensorSpec& input : task.inputs) names.push_back(input.name);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "linear_weight", "norm_weight", "norm_bias"}));
  EXPECT_EQ(task.inputs.at(1).role, task::Role::kParameter);
  EXPECT_EQ(task.inputs.at(2).values.kind, "ones");
  EXPECT_EQ(task.inputs.at(3).values.kind, "zeros");
  EXPECT_THAT(task.reference, HasSubstr("torch.batch_norm("));
  const process::ChildResult valid = warpsmith({"validate", "tasks/level2_1_Chain", "--device", "cpu"});
  EXPECT_EQ(valid.exit_code, kExitOk) << valid.out << valid.err;
}

// One bad module costs no other its place.
TEST_F(Import, WhatCannotBeImportedIsRefusedWithTheReason) {
  add("level1/1_Random.py", module_of("return nn.functional.dropout(x, 0.5, self.training)"));
  add("level1/2_Ends.py", "import os\nos._exit(3)\n");
  add("level1/3_Broken.py", "def get_inputs(:\n");
  add("level1/4_NoModel.py", "def get_inputs():\n    return []\n");
  add("level1/5_Values.py", module_of("return x + 1", "pass", "[torch.rand(batch, width).sort()[0]]"));
  add("level1/6_Unneeded.py", module_of("return torch.ones(3)"));
  add("level1/7_OneSize.py", module_of("return x.view(64, 6, 8)"));
  add("level1/8_Prints.py", "print('{\"task\": 1}')\n" + module_of("return x - 1"));
  // Beside Python's own stdout: it is no answer, neither its own nor the next one's.
  add("level1/9_Writes.py",
      "import os\nos.write(1, b'{\"task\": {\"inputs\": 1}}\\n')\n" + module_of("return x - 2"));
  const Json answer = imported({"--level", "1"});
  EXPECT_EQ(exit_code_, kExitFailed) << err_;
  ASSERT_TRUE(answer.is_object()) << err_;
  EXPECT_EQ(answer.at("imported"), Json({"level1_8_Prints", "level1_9_Writes"})) << answer;
  std::map<std::string, std::string> why;
  for (const Json& one : answer.at("refused")) why[one.at("task")] = one.at("why");
  EXPECT_THAT(why["level1_1_Random"], HasSubstr("draws random numbers"));
  EXPECT_THAT(why["level1_2_Ends"], HasSubstr("its python3 ended"));
  EXPECT_THAT(why["level1_3_Broken"], HasSubstr("SyntaxError"));
  EXPECT_THAT(why["level1_4_NoModel"], HasSubstr("it does not define `Model`"));
  EXPECT_THAT(why["level1_5_Values"], HasSubstr("how get_inputs() makes `x` is not known"));
  EXPECT_NE(why["level1_6_Unneeded"], "");
  EXPECT_NE(why["level1_7_OneSize"], "");
}

TEST_F(Import, MistakesOfTheCommandLine) {
  EXPECT_EQ(warpsmith({"import", "kernelbench", "nowhere", "--into", "tasks"}).exit_code, kExitUsage);
  EXPECT_EQ(warpsmith({"import", "something", "checkout", "--into", "tasks"}).exit_code, kExitUsage);
  EXPECT_EQ(warpsmith({"import", "kernelbench", "checkout", "--into", "tasks", "--level", "9"}).exit_code,
            kExitUsage);
}

}  // namespace
}  // namespace warpsmith
