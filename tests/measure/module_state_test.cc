// The weights that a task's module is made with, and the reference that has them.
#include "warpsmith/measure/module_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/measure/reference.h"
#include "warpsmith/process/child.h"
#include "warpsmith/python/folders.h"
#include "warpsmith/python/interpreter.h"

namespace warpsmith::measure {
namespace {

using ::testing::HasSubstr;

constexpr const char* kYaml = R"yaml(schema: warpsmith.task/1
title: A module
level: 1
split: train
ops: [linear]
dims: [BATCH]
inputs:
  x: {shape: [BATCH, 8]}
  w: {shape: [4, 8], role: parameter, state_dict: "linear.weight"}
  shift: {shape: [4], role: buffer, dtype: float64, state_dict: "shift"}
outputs:
  out: {shape: [BATCH, 4], dtype: float64}
module: reference.py
reference: |
  def forward(x: Tensor, w: Tensor, shift: Tensor) -> Tensor:
    return torch.linear(x, w) + shift
timing: [{BATCH: 4}]
hidden: [{BATCH: 3}]
)yaml";

constexpr const char* kModule = R"py(import torch
class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, 4, bias=False)
        self.register_buffer("shift", torch.arange(4, dtype=torch.float64), persistent=False)
    def forward(self, x):
        return self.linear(x) + self.shift
def get_inputs():
    return [torch.rand(4, 8)]
def get_init_inputs():
    torch.rand(3)
    return [8]
)py";

class ModuleState : public testing::Test {
 protected:
  void SetUp() override {
    python_ = python::find_python();
    if (!python_ || !python::ask_python(*python_, "import torch\nprint(1)"))
      GTEST_SKIP() << "there is no python3 with torch here";
    configure_torch(1);
  }
  task::Task task(const std::string& module) {
    make_folders(scratch_ / "t");
    write_file_atomic(scratch_ / "t/reference.py", module);
    write_file_atomic(scratch_ / "t/task.yaml", kYaml);
    Diagnostics mistakes;
    const auto loaded = task::load_task(scratch_ / "t", mistakes);
    if (!loaded) throw InvalidInput(mistakes);
    return task::as_module(*loaded);
  }
  std::string problem(const std::string& module) {
    try {
      module_state(task(module), scratch_ / "states", true);
    } catch (const InvalidInput& e) {
      return e.what();
    }
    return "";
  }
  std::optional<std::filesystem::path> python_;
  Scratch scratch_;
};

// As KernelBench's evaluator makes it: seeded before the arguments, and again before the module.
TEST_F(ModuleState, AModuleIsSeededAndItsReferenceHasItsWeights) {
  task::Task module = task(kModule);
  module.state_file = module_state(module, scratch_ / "states", true);
  EXPECT_EQ(read_file(module.state_file).size(), 4 * 8 * sizeof(float) + 4 * sizeof(double));
  std::vector<float> x(16);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 8;
  const std::vector<std::span<const std::byte>> inputs = {std::as_bytes(std::span(x))};
  const Reference reference(module);
  const std::vector<double> got = reference.run({{"BATCH", 2}}, inputs).front().reals;
  const std::optional<Json> right = python::ask_python(
      *python_,
      "import json, torch\ntorch.manual_seed(42)\nlinear = torch.nn.Linear(8, 4, bias=False)\n"
      "out = linear(torch.arange(16).view(2, 8) / 8) + torch.arange(4, dtype=torch.float64)\n"
      "print(json.dumps(out.view(-1).tolist()))");
  ASSERT_TRUE(right);
  ASSERT_EQ(got.size(), 8u);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], right->at(i).get<double>(), 1e-6) << i;
  EXPECT_NEAR(reference.run_oracle({{"BATCH", 2}}, inputs).front().reals[5], got[5], 1e-6);
}

TEST_F(ModuleState, ItIsMadeOnceAndThatOfOthersGoes) {
  const task::Task module = task(kModule);
  const std::filesystem::path first = module_state(module, scratch_ / "states", true);
  write_file_atomic(first, "kept");
  EXPECT_EQ(module_state(module, scratch_ / "states", true), first);
  EXPECT_EQ(read_file(first), "kept");
  const std::filesystem::path second =
      module_state(task(std::string(kModule) + "# changed\n"), scratch_ / "states", true);
  EXPECT_NE(second, first);
  EXPECT_FALSE(std::filesystem::exists(first));
}

TEST_F(ModuleState, AModuleThatIsNotTheTasksIsTold) {
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string text = kModule;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_THAT(
      problem(changed("bias=False", "bias=False, dtype=torch.float16")),
      HasSubstr("t/task.yaml: module: `linear.weight` is float16 [4, 8], the task says float32 [4, 8]"));
  EXPECT_THAT(problem(changed("\"shift\"", "\"shifted\"")),
              HasSubstr("module: its Model has no parameter or buffer `shift`"));
  EXPECT_THAT(problem(changed("super().__init__()", "raise ValueError('not today')")),
              HasSubstr("module: ValueError: not today"));
  EXPECT_THAT(problem("import os\nos._exit(3)\n"), HasSubstr("module: its python3 ended"));
  EXPECT_THAT(problem("import json, os, sys\n"
                      "os.symlink('/etc/hostname', json.load(open(sys.argv[1]))['into'])\n"
                      "os.write(1, json.dumps({'problem': ''}).encode())\nos._exit(0)\n"),
              HasSubstr("module: what it wrote is not its parameters and buffers"));
  EXPECT_THAT(problem("class Model(:\n"), HasSubstr("module: SyntaxError: invalid syntax"));
}

TEST_F(ModuleState, AFileThatIsShortIsTold) {
  task::Task module = task(kModule);
  module.state_file = scratch_ / "short";
  write_file_atomic(module.state_file, "12345");
  try {
    const Reference reference(module);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("task t: cannot read `linear.weight` of its module in "));
  }
}

}  // namespace
}  // namespace warpsmith::measure
