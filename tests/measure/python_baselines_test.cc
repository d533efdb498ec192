// The pair of a Python baseline, from the protocol to the score, on the CPU.
#include "warpsmith/measure/python_baselines.h"

#include <gtest/gtest.h>

#include "scratch.h"
#include "warpsmith/measure/baselines.h"
#include "warpsmith/measure/reference.h"
#include "warpsmith/python/interpreter.h"
#include "with_variable.h"

namespace warpsmith::measure {
namespace {

Settings quick() {
  Settings settings;
  settings.budget_s = 1;
  settings.protocol.target = 0.2;
  return settings;
}

// For what is answered, not how fast.
Settings shortest() {
  Settings settings = quick();
  settings.protocol.buckets = 3;
  settings.protocol.rounds_a_bucket = 1;
  settings.protocol.target = 0.9;
  return settings;
}

std::vector<task::Task> dataset() {
  Diagnostics diagnostics;
  std::vector<task::Task> tasks = task::load_tasks(WARPSMITH_SOURCE_DIR "/datasets", diagnostics);
  EXPECT_TRUE(diagnostics.empty());
  return tasks;
}

task::Task one(const std::string& id) {
  for (task::Task& task : dataset())
    if (task.id == id) return std::move(task);
  throw Error("no task " + id);
}

class PythonBaselinesTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { configure_torch(1); }
  // Skips where there is no python3 with this torch.
  bool skips(const BaselineTiming& timing) {
    return timing.state == BaselineState::kMissing && (timing.reason.find("no torch") != std::string::npos ||
                                                       timing.reason.find("has torch") != std::string::npos ||
                                                       timing.reason.find("no python3") != std::string::npos);
  }
  // Skips as well; on a busy host it may be unsteady. The last thing that a test does.
  void expect_covered(const BaselineTiming& timing) {
    if (skips(timing)) GTEST_SKIP() << timing.reason;
    EXPECT_TRUE(timing.state == BaselineState::kCovered || timing.reason.starts_with("unstable"))
        << timing.reason;
  }
  // Of a program in place of gelu's. `answers`: what its flags say that right answers were; empty: nothing.
  void expect_covered(const char* reference, const char* name, const std::string& answers = "") {
    PythonBaselines python(shortest(), "cpu", folder_ / "python");
    task::Task task = one("gelu");
    task.reference = reference;
    BaselineTiming timing = python.measure(task, name);
    expect_covered(timing);
    if (!skips(timing)) {
      EXPECT_EQ(timing.flags["right_answers"], answers);
    }
  }
  Scratch folder_;
};

TEST_F(PythonBaselinesTest, EagerAgainstItselfIsOne) {
  PythonBaselines python(quick(), "cpu", folder_ / "python");
  const BaselineTiming timing = python.measure(one("matmul_large"), "eager");
  if (skips(timing)) GTEST_SKIP() << timing.reason;
  if (timing.reason.starts_with("unstable")) GTEST_SKIP() << "a busy host: " << timing.reason;
  ASSERT_EQ(timing.state, BaselineState::kCovered) << timing.reason;
  EXPECT_NEAR(timing.ratio, 1, 0.35);
  EXPECT_GE(timing.rounds, 7);
  EXPECT_GE(timing.batch, 1);
  EXPECT_GT(timing.eager_ns, 0);
  EXPECT_EQ(timing.flags.at("tf32"), "off");
  EXPECT_FALSE(timing.flags.at("torch").empty());
}

// In one python3; the flag is what torch says of itself.
TEST_F(PythonBaselinesTest, TorchsFlagsFollowTheTask) {
  Settings settings = shortest();
  PythonBaselines python(settings, "cpu", folder_ / "python");
  task::Task task = one("gelu");
  for (const char* math : {"strict", "torch_default", "strict"}) {
    task.math = math;
    const BaselineTiming timing = python.measure(task, "eager");
    if (skips(timing)) GTEST_SKIP() << timing.reason;
    EXPECT_EQ(timing.math, math);
    ASSERT_TRUE(timing.flags.contains("tf32")) << timing.reason;
    EXPECT_EQ(timing.flags.at("tf32"), task.math == "strict" ? "off" : "torch's default");
  }
  settings.math = "torch_default";
  PythonBaselines loose(settings, "cpu", folder_ / "loose");
  const BaselineTiming timing = loose.measure(one("gelu"), "eager");
  EXPECT_EQ(timing.math, "torch_default");
  EXPECT_EQ(timing.flags.at("tf32"), "torch's default");
}

// As Python's own, and as TorchScript, whose answers must be Python's.
TEST_F(PythonBaselinesTest, EveryReferenceOfTheDatasetRunsInPython) {
  PythonBaselines python(shortest(), "cpu", folder_ / "python");
  for (const char* name : {"eager", "torchscript"})
    for (const task::Task& task : dataset()) {
      const BaselineTiming timing = python.measure(task, name);
      if (skips(timing)) GTEST_SKIP() << timing.reason;
      if (timing.reason.starts_with("unstable")) continue;
      EXPECT_EQ(timing.state, BaselineState::kCovered) << task.id << " " << name << ": " << timing.reason;
    }
}

// As a method, as a function, and as what only torch.ops has.
TEST_F(PythonBaselinesTest, OperatorsThatOnlyTorchScriptKnowsByThatNameAreFound) {
  expect_covered(
      "def forward(x: Tensor) -> Tensor:\n  return torch.gelu(x.silu()).hardtanh(-1.0, 1.0).elu()\n",
      "eager");
}

// Tensors of its own are float32: eager's answers stand in for right ones then.
TEST_F(PythonBaselinesTest, AProgramThatDoesNotRunInFloat64HasItsBaseline) {
  expect_covered(
      "def forward(x: Tensor) -> Tensor:\n"
      "  return torch.lerp(x, torch.ones([1], dtype=torch.float32), 0.5)\n",
      "torchscript", "eager's, and inputs one rounding away");
}

// A traced module says types and layouts by number.
TEST_F(PythonBaselinesTest, NumbersOfTypesAreTypes) {
  expect_covered(
      "def forward(x: Tensor) -> Tensor:\n"
      "  one = torch.full([1], 1.0, dtype=6, layout=0, device=x.device, pin_memory=False)\n"
      "  return torch.clone(x * one.to(dtype=x.dtype), memory_format=0)\n",
      "eager");
}

// TorchScript passes them a list, and Python each tensor.
TEST_F(PythonBaselinesTest, OperatorsThatTakeAListInTorchScriptRun) {
  expect_covered(
      "def forward(x: Tensor) -> Tensor:\n  both = torch.broadcast_tensors([x, torch.zeros_like(x)])\n"
      "  return both[0] + both[1]\n",
      "eager");
}

// Where it is not left to eager, torch.compile unrolls it: a graph of each time step, and no break.
TEST_F(PythonBaselinesTest, RecurrentNetworksAreLeftToEagerByTheCompiler) {
  PythonBaselines python(shortest(), "cpu", folder_ / "python");
  task::Task task = one("gelu");
  task.reference =
      "def forward(x: Tensor) -> Tensor:\n"
      "  w = torch.ones([12, 4], dtype=x.dtype)\n"
      "  h = torch.zeros([1, 1, 4], dtype=x.dtype)\n"
      "  y = torch.gru(x[:64].view(16, 1, 4), h, [w, w], False, 1, 0.0, False, False, False)\n"
      "  return x + y[0].sum()\n";
  BaselineTiming timing = python.measure(task, "torch_compile");
  if (skips(timing)) GTEST_SKIP() << timing.reason;
  EXPECT_NE(timing.flags["graph_breaks"], "0") << timing.reason;
  EXPECT_EQ(python.measure(one("gelu"), "torch_compile").flags["graph_breaks"], "0");
  expect_covered(timing);
}

// A module's parameters lie in one place, whose address a compiled program may keep; all others move.
TEST_F(PythonBaselinesTest, ParametersStayInOnePlaceAndTheirValuesAreRenewed) {
  PythonBaselines python(shortest(), "cpu", folder_ / "python");
  task::Task task = one("rms_norm");
  task.reference =
      "def forward(x: Tensor, w: Tensor, eps: float) -> Tensor:\n"
      "  places = getattr(torch, 'places', {'w': set(), 'x': set(), 'values': set()})\n"
      "  torch.places = places\n"
      "  if w.dtype == torch.float32:\n"
      "    places['w'].add(w.data_ptr())\n"
      "    places['x'].add(x.data_ptr())\n"
      "    places['values'].add(float(w.flatten()[0]))\n"
      "  assert len(places['w']) == 1, 'the parameter moves'\n"
      "  if len(places['x']) > 20:\n"
      "    assert len(places['values']) > 3, 'the parameter keeps its values'\n"
      "  return x * torch.rsqrt((x * x).mean(1, keepdim=True) + eps) * w\n";
  const BaselineTiming timing = python.measure(task, "eager");
  expect_covered(timing);
}

TEST_F(PythonBaselinesTest, WhatFailsIsARowWithItsReasonAndTheNextTaskIsMeasured) {
  PythonBaselines python(quick(), "cpu", folder_ / "python");
  task::Task bad = one("gelu");
  bad.reference = "def forward(x: Tensor) -> Tensor:\n  return torch.nonsense(x)\n";
  const BaselineTiming timing = python.measure(bad, "eager");
  if (skips(timing)) GTEST_SKIP() << timing.reason;
  EXPECT_EQ(timing.state, BaselineState::kMissing);
  EXPECT_EQ(timing.reason, "AttributeError: module 'torch' has no attribute 'nonsense'");
  const BaselineTiming next = python.measure(one("gelu"), "eager");
  EXPECT_TRUE(next.state == BaselineState::kCovered || next.reason.starts_with("unstable")) << next.reason;
}

// Another process has the GPU's lock and its memory when this one compiles.
TEST_F(PythonBaselinesTest, WhatFindsNoMemoryWithoutTheLockIsOpenedWithIt) {
  PythonBaselines python(shortest(), "cpu", folder_ / "python");
  task::Task task = one("gelu");
  const std::string mark = (folder_ / "was here").string();
  const auto reference_that_fails = [&](const std::string& times) {
    return "import os\nif " + times + ":\n  open('" + mark +
           "', 'a').write('.')\n  raise torch.OutOfMemoryError('CUDA out of memory.')\n"
           "def forward(x: Tensor) -> Tensor:\n  return x * 2.0\n";
  };
  task.reference = reference_that_fails("not os.path.exists('" + mark + "')");
  const BaselineTiming once = python.measure(task, "eager");
  if (skips(once)) GTEST_SKIP() << once.reason;
  EXPECT_TRUE(once.state == BaselineState::kCovered || once.reason.starts_with("unstable")) << once.reason;
  EXPECT_TRUE(std::filesystem::exists(mark));
  task.reference = reference_that_fails("True");
  const BaselineTiming always = python.measure(task, "eager");
  EXPECT_EQ(always.state, BaselineState::kMissing);
  EXPECT_EQ(always.reason, "OutOfMemoryError: CUDA out of memory.");
  EXPECT_EQ(std::filesystem::file_size(mark), 3U);  // once, then without and with the lock
}

// Answers are compared in pieces of 16 Mi elements; one wrong element lies in the last of three.
TEST_F(PythonBaselinesTest, OneWrongElementOfALargeOutputIsFound) {
  PythonBaselines python(shortest(), "cpu", folder_ / "python");
  task::Task task = one("gelu");
  const auto reference_with = [](const char* last) {
    return std::string("def forward(x: Tensor) -> Tensor:\n  y = (x.flatten()[0] * torch.ones([34000000], ") +
           "dtype=x.dtype)).view([3400, 10000])\n  if torch.jit.is_scripting():\n    y[3399, 9999] = " +
           last + "\n  return y\n";
  };
  task.reference = reference_with("y[3399, 9999] + 1.0");
  const BaselineTiming wrong = python.measure(task, "torchscript");
  if (skips(wrong)) GTEST_SKIP() << wrong.reason;
  EXPECT_EQ(wrong.state, BaselineState::kMissing);
  EXPECT_TRUE(wrong.reason.starts_with("wrong_output: output 0 is 1 off")) << wrong.reason;
}

// Of elements that share a place, and of rows with gaps.
TEST_F(PythonBaselinesTest, InputsMayHaveStrides) {
  PythonBaselines python(shortest(), "cpu", folder_ / "python");
  task::Task task = one("gelu");
  for (const char* stride : {"0", "2"}) {
    task.inputs.at(0).strides = {task::Expression::parse(stride)};
    const BaselineTiming timing = python.measure(task, "torchscript");
    if (skips(timing)) GTEST_SKIP() << timing.reason;
    EXPECT_TRUE(timing.state == BaselineState::kCovered || timing.reason.starts_with("unstable"))
        << stride << ": " << timing.reason;
  }
}

// Draws would be no indices.
TEST_F(PythonBaselinesTest, InputsMayBePrepared) {
  PythonBaselines python(shortest(), "cpu", folder_ / "python");
  task::Task task = one("gelu");
  task.reference =
      "def forward(x: Tensor) -> Tensor:\n"
      "  return x + torch.index_select(torch.arange(2.0), 0, x.flatten().long()).view_as(x)\n";
  task.prepare = "def prepare(x: Tensor) -> Tensor:\n  return torch.clamp(x, 0.0, 1.0)\n";
  task.prepared = {0};
  const BaselineTiming timing = python.measure(task, "torchscript");
  expect_covered(timing);
}

// What is no number where eager's is one is as wrong as can be.
TEST_F(PythonBaselinesTest, AnswersThatAreNoNumbersAreWrong) {
  PythonBaselines python(shortest(), "cpu", folder_ / "python");
  task::Task task = one("gelu");
  for (const char* wrong : {"x * float('nan')", "x * float('inf')"}) {
    task.reference =
        std::string("def forward(x: Tensor) -> Tensor:\n  if torch.jit.is_scripting():\n    return ") +
        wrong + "\n  return x * 2.0\n";
    const BaselineTiming timing = python.measure(task, "torchscript");
    if (skips(timing)) GTEST_SKIP() << timing.reason;
    EXPECT_EQ(timing.state, BaselineState::kMissing);
    EXPECT_TRUE(timing.reason.starts_with("wrong_output: output 0 is inf off")) << timing.reason;
  }
  task.reference = "def forward(x: Tensor) -> Tensor:\n  return x / 0.0\n";  // eager's own
  const BaselineTiming timing = python.measure(task, "torchscript");
  EXPECT_TRUE(timing.state == BaselineState::kCovered || timing.reason.starts_with("unstable"))
      << timing.reason;
}

TEST_F(PythonBaselinesTest, CompiledCodeIsCheckedAndTimed) {
  PythonBaselines python(quick(), "cpu", folder_ / "python");
  const BaselineTiming timing = python.measure(one("residual_rms_norm"), "torch_compile");
  if (skips(timing)) GTEST_SKIP() << timing.reason;
  if (timing.state == BaselineState::kMissing)  // no compiler, a busy host: never anything but a reason
    GTEST_SKIP() << timing.reason;
  EXPECT_EQ(timing.flags.at("mode"), "default");
  EXPECT_GT(timing.ratio, 0);
  EXPECT_LE(timing.low, timing.ratio);
  EXPECT_GE(timing.high, timing.ratio);
}

TEST_F(PythonBaselinesTest, WithoutPythonEveryRowSaysSo) {
  const WithVariable none("WARPSMITH_PYTHON", "");
  PythonBaselines python(quick(), "cpu", folder_ / "python");
  for (int i = 0; i < 2; ++i) {
    const BaselineTiming timing = python.measure(one("gelu"), "torch_compile");
    EXPECT_EQ(timing.state, BaselineState::kMissing);
    EXPECT_EQ(timing.reason, "there is no python3 here");
  }
}

}  // namespace
}  // namespace warpsmith::measure
