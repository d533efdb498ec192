#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <limits>

#include "warpsmith/base/files.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/task/task.h"

namespace warpsmith::task {
namespace {

// A folder that goes away with the test.
class LoadTask : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) /
            ("load_task_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(root_);
    make_folders(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::filesystem::path write(const std::string& id, const std::string& text) {
    make_folders(root_ / id);
    write_file_atomic(root_ / id / "task.yaml", text);
    return root_ / id;
  }
  // The mistakes of a task file, one line each, without the path.
  std::string mistakes(const std::string& text) {
    Diagnostics diagnostics;
    const auto task = load_task(write("t", text), diagnostics);
    EXPECT_EQ(task.has_value(), diagnostics.empty());
    std::string lines;
    for (Diagnostic diagnostic : diagnostics) {
      EXPECT_TRUE(diagnostic.file.ends_with("/t/task.yaml")) << diagnostic.file;
      diagnostic.file = "t";
      lines += to_string(diagnostic) + "\n";
    }
    return lines;
  }

  std::filesystem::path root_;
};

const char* const kGood = R"yaml(schema: warpsmith.task/1
title: A test
level: 2
split: heldout_combination
ops: [scale, bias]
dims: [M, N]
inputs:
  x: {role: data, dtype: float32, shape: [M, N], values: "normal(0, 1 / sqrt(N))"}
  w: {role: parameter, dtype: float16, shape: [N * 2]}
  ids: {dtype: int64, shape: [M], values: "integers(0, N)"}
  order: {role: buffer, dtype: int32, shape: [N], values: permutation}
scalars: {eps: 1.0e-5, k: 3}
outputs:
  out0: {dtype: float32, shape: [M, N]}
  out1: {shape: []}
reference: |
  def forward(x: Tensor, w: Tensor, ids: Tensor, order: Tensor,
              eps: float, k: int) -> Tuple[Tensor, Tensor]:
    return x, x.sum()
timing:
  - {M: 256, N: 512}
hidden:
  - {M: 3, N: 1000}
  - {M: 1, N: 1}
distributions:
  - {x: "uniform(-1, 1)"}
flops: 2 * M * N
bytes: 8 * M * N
tolerance: 1.0e-4
math: torch_default
memory: 64MiB
)yaml";

std::string with(std::string from, std::string to) {
  std::string text = kGood;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST_F(LoadTask, ReadsEverything) {
  Diagnostics diagnostics;
  const auto task = load_task(write("some_task", kGood) / "", diagnostics);
  for (const Diagnostic& diagnostic : diagnostics) ADD_FAILURE() << to_string(diagnostic);
  ASSERT_TRUE(task);
  EXPECT_EQ(task->id, "some_task");
  EXPECT_EQ(task->title, "A test");
  EXPECT_EQ(task->level, 2);
  EXPECT_EQ(task->split, Split::kHeldoutCombination);
  EXPECT_EQ(task->ops, (std::vector<std::string>{"scale", "bias"}));
  EXPECT_EQ(task->dims, (std::vector<std::string>{"M", "N"}));
  ASSERT_EQ(task->inputs.size(), 4u);
  EXPECT_EQ(task->inputs[0].name, "x");
  EXPECT_EQ(task->inputs[0].role, Role::kData);
  EXPECT_EQ(task->inputs[0].values.kind, "normal");
  EXPECT_EQ(value_argument(task->inputs[0].values, 1, {{"M", 1}, {"N", 64}}), 0.125);
  EXPECT_EQ(task->inputs[1].dtype, Dtype::kFloat16);
  EXPECT_EQ(task->inputs[1].role, Role::kParameter);
  EXPECT_EQ(task->inputs[1].values.kind, "normal");
  EXPECT_EQ(value_argument(task->inputs[1].values, 1, {}), 1.0);
  EXPECT_EQ(shape_at(task->inputs[1], {{"M", 3}, {"N", 5}}), (std::vector<std::int64_t>{10}));
  EXPECT_EQ(task->inputs[2].values.kind, "integers");
  EXPECT_EQ(value_argument(task->inputs[2].values, 1, {{"M", 3}, {"N", 5}}), 5.0);
  EXPECT_EQ(task->inputs[3].role, Role::kBuffer);
  ASSERT_EQ(task->scalars.size(), 2u);
  EXPECT_TRUE(task->scalars[0].is_float);
  EXPECT_EQ(task->scalars[0].value, 1e-5);
  EXPECT_FALSE(task->scalars[1].is_float);
  ASSERT_EQ(task->outputs.size(), 2u);
  EXPECT_TRUE(task->outputs[1].shape.empty());
  EXPECT_EQ(task->reference.substr(0, 12), "def forward(");
  EXPECT_EQ(task->timing, (std::vector<Dims>{{{"M", 256}, {"N", 512}}}));
  EXPECT_EQ(task->hidden.size(), 2u);
  ASSERT_EQ(task->distributions.size(), 1u);
  EXPECT_EQ(task->distributions[0].at("x").kind, "uniform");
  EXPECT_EQ(task->flops->evaluate(dims_scope(task->timing[0])), 262144);
  EXPECT_EQ(task->tolerance, 1e-4);
  EXPECT_EQ(task->math, "torch_default");
  EXPECT_EQ(task->memory_bytes, 64u << 20);
  EXPECT_EQ(task->digest, sha256_hex(kGood));
}

constexpr const char* kByDevice =
    "timing:\n  cpu: [{M: 256, N: 512}]\n  gpu: [{M: 2048, N: 512}, {M: 1024, N: 512}]\n";

TEST_F(LoadTask, TimingShapesByDevice) {
  const std::string text = with("timing:\n  - {M: 256, N: 512}\n", kByDevice);
  Diagnostics diagnostics;
  const auto task = load_task(write("t", text), diagnostics);
  ASSERT_TRUE(task) << to_string(diagnostics.at(0));
  const Dims cpu{{"M", 256}, {"N", 512}}, gpu{{"M", 2048}, {"N", 512}}, second{{"M", 1024}, {"N", 512}};
  EXPECT_EQ(task->timing, std::vector<Dims>{cpu});
  EXPECT_EQ(task->gpu_timing, (std::vector<Dims>{gpu, second}));
  EXPECT_EQ(task->gpu_digest, sha256_hex(text));

  EXPECT_EQ(on_device(*task, "cpu").timing, std::vector<Dims>{cpu});
  EXPECT_EQ(on_device(*task, "cpu").digest, task->digest);
  const Task on_gpu = on_device(on_device(*task, "H100"), "H100");
  EXPECT_EQ(on_gpu.timing, (std::vector<Dims>{gpu, second}));
  EXPECT_EQ(on_gpu.digest, task->gpu_digest);
  ASSERT_EQ(on_gpu.hidden.size(), task->hidden.size() + 1);
  EXPECT_EQ(on_gpu.hidden.back(), cpu) << "is checked there, once";
}

TEST_F(LoadTask, AListOfTimingShapesIsForAllDevices) {
  Diagnostics diagnostics;
  const auto task = load_task(write("t", kGood), diagnostics);
  ASSERT_TRUE(task);
  EXPECT_TRUE(task->gpu_timing.empty());
  const Task on_gpu = on_device(*task, "H100");
  EXPECT_EQ(on_gpu.timing, task->timing);
  EXPECT_EQ(on_gpu.hidden, task->hidden);
  EXPECT_EQ(on_gpu.digest, sha256_hex(kGood));
}

TEST_F(LoadTask, ShapesOfGpusDoNotChangeTheDigestOfACpu) {
  const auto digests = [&](const std::string& timing) {
    Diagnostics diagnostics;
    const auto task = load_task(write("t", with("timing:\n  - {M: 256, N: 512}\n", timing)), diagnostics);
    EXPECT_TRUE(task) << timing;
    return task ? std::pair(task->digest, task->gpu_digest) : std::pair<std::string, std::string>();
  };
  const auto first = digests(kByDevice);
  const auto other_gpu = digests("timing:\n  cpu: [{M: 256, N: 512}]\n  gpu: [{M: 4096, N: 512}]\n");
  const auto other_cpu = digests("timing:\n  cpu: [{M: 128, N: 512}]\n  gpu: [{M: 4096, N: 512}]\n");
  EXPECT_EQ(first.first, other_gpu.first);
  EXPECT_NE(first.second, other_gpu.second);
  EXPECT_NE(other_gpu.first, other_cpu.first);
  EXPECT_NE(other_gpu.second, other_cpu.second) << "a GPU checks the shapes of a CPU, too";
}

TEST_F(LoadTask, TellsMistakesInTimingShapesByDevice) {
  const auto of = [&](const std::string& timing) {
    return mistakes(with("timing:\n  - {M: 256, N: 512}\n", timing));
  };
  EXPECT_EQ(of("timing:\n  cpu: [{M: 256, N: 512}]\n"), "t:21:3: `timing`: key `gpu` is missing\n");
  EXPECT_EQ(of("timing: {gpu: [{M: 256, N: 512}]}\n"), "t:20:9: `timing`: key `cpu` is missing\n");
  EXPECT_EQ(
      of("timing: {cpu: [{M: 2, N: 2}], gpus: [{M: 256, N: 512}]}\n"),
      "t:20:9: `timing`: key `gpu` is missing\nt:20:31: `timing`: key `gpus` is not known (did you mean "
      "`gpu`?)\n");
  EXPECT_EQ(of("timing: {cpu: [{M: 2, N: 2}], gpu: []}\n"),
            "t:20:36: `timing.gpu` needs at least one shape\n");
  EXPECT_EQ(of("timing: {cpu: [{M: 2, N: 2}], gpu: [{M: 9}]}\n"),
            "t:20:37: shape in `timing.gpu`: key `N` is missing\n");
  EXPECT_EQ(of("timing: {cpu: [{M: 2, N: 2}], gpu: [{M: 9, N: 9}, {M: 9, N: 9}]}\n"),
            "t:20:51: this shape is listed twice\n");
  EXPECT_EQ(of("timing: {cpu: [{M: 2, N: 2}], gpu: [{M: 3, N: 1000}]}\n"),
            "t:22:5: this shape is in `timing` already\n");
  EXPECT_EQ(of("timing: {cpu: [{M: 2, N: 2}], gpu: [{M: 2, N: 2}]}\n"),
            "t:20:9: `cpu` and `gpu` list the same shapes (timing: [...])\n");
  EXPECT_EQ(of("timing: {cpu: [{M: 2, N: 2}], gpu: [{M: 65536, N: 65536}]}\n").substr(0, 60),
            "t:20:37: the tensors of this shape take more than `memory`, ");
  EXPECT_EQ(
      of("timing: 5\n"),
      "t:20:9: `timing`: expected a list, found the integer 5\nt:20:9: `timing` needs at least one shape\n");
}

TEST_F(LoadTask, ATaskSaysWhyItIsSmall) {
  Diagnostics diagnostics;
  const auto task =
      load_task(write("t", with("tolerance:", "small: between two layers\ntolerance:")), diagnostics);
  ASSERT_TRUE(task);
  EXPECT_EQ(task->small, "between two layers");
  EXPECT_EQ(mistakes(with("tolerance:", "small: \"\"\ntolerance:")), "t:29:8: `small` must say why\n");
  EXPECT_NE(mistakes(with("tolerance:", "small: true\ntolerance:")), "");
}

TEST(TaskMath, TheWorkflowOrTheTaskAllowsTorchsDefault) {
  Task strict, loose;
  loose.math = "torch_default";
  EXPECT_EQ(math_of(strict, "strict"), "strict");
  EXPECT_EQ(math_of(strict, "torch_default"), "torch_default");
  EXPECT_EQ(math_of(loose, "strict"), "torch_default");
  EXPECT_EQ(math_of(loose, "torch_default"), "torch_default");
  EXPECT_EQ(under_math(strict, "torch_default").math, "torch_default");
  EXPECT_EQ(under_math(loose, "strict").math, "torch_default");
}

TEST_F(LoadTask, AFileThatIsNoMapIsAMistake) {
  const std::string help = " (a task begins with schema: warpsmith.task/1)\n";
  for (const char* text : {"", "\n \n", "# only a comment\n", "---\n", "~", "null\n"}) {
    EXPECT_EQ(mistakes(text), "t:1:1: expected a map, found nothing" + help) << text;
  }
  EXPECT_EQ(mistakes("gelu\n"), "t:1:1: expected a map, found `gelu`" + help);
  EXPECT_EQ(mistakes("[a, b]\n"), "t:1:1: expected a map, found a list" + help);
}

TEST_F(LoadTask, NothingWhereAMapShouldBeIsAMistake) {
  EXPECT_EQ(mistakes(with("  w: {role: parameter, dtype: float16, shape: [N * 2]}", "  w:")),
            "t:9:3: input `w`: key `shape` is missing\n");
  EXPECT_EQ(mistakes(with("  out1: {shape: []}", "  out1:")),
            "t:15:3: output `out1`: key `shape` is missing\n");
  EXPECT_EQ(mistakes(with("  - {M: 3, N: 1000}", "  -")),
            "t:23:3: shape in `hidden`: key `M` is missing\nt:23:3: shape in `hidden`: key `N` is missing\n");
  EXPECT_EQ(mistakes(with("  - {x: \"uniform(-1, 1)\"}", "  -")),
            "t:26:3: a distribution names at least one input\n");
}

// Whatever key has no value, the task loads or has a mistake in that line or below, and nothing falls over.
TEST_F(LoadTask, EveryKeyMayBeWithoutItsValue) {
  const std::string text = kGood;
  for (std::size_t colon = text.find(": "); colon != std::string::npos; colon = text.find(": ", colon + 1)) {
    const std::size_t end = text.find('\n', colon);
    const std::string broken = text.substr(0, colon + 1) + text.substr(end);
    mistakes(broken);
    mistakes(text.substr(0, colon + 1));
  }
}

TEST_F(LoadTask, MistakesInTasksThatNobodyNamedAreApart) {
  write("a", kGood);
  write("b", "");
  write("c", "# nothing\n");
  Diagnostics mistakes, elsewhere;
  const auto tasks = load_tasks(root_, {"a", "c"}, mistakes, elsewhere);
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].id, "a");
  ASSERT_EQ(mistakes.size(), 1u);
  EXPECT_EQ(mistakes[0].file, (root_ / "c/task.yaml").string());
  ASSERT_EQ(elsewhere.size(), 1u);
  EXPECT_EQ(elsewhere[0].file, (root_ / "b/task.yaml").string());
}

TEST_F(LoadTask, OptionalKeysHaveDefaults) {
  std::string text = kGood;
  text.resize(text.find("distributions:"));
  Diagnostics diagnostics;
  const auto task = load_task(write("t", text), diagnostics);
  ASSERT_TRUE(task);
  EXPECT_FALSE(task->flops || task->bytes || task->tolerance);
  EXPECT_EQ(task->math, "strict");
  EXPECT_EQ(task->memory_bytes, 1ull << 30);
}

TEST_F(LoadTask, TellsMistakesWithTheirPlace) {
  EXPECT_EQ(mistakes(with("split: heldout_combination", "split: heldout")),
            "t:4:8: `split`: `heldout` is not known (expected one of train, sft_only, "
            "heldout_combination, heldout_operation, heldout_length, extra)\n");
  EXPECT_EQ(mistakes(with("shape: [N * 2]", "shape: [N * (M]")), "t:9:54: `N * (M`: `)` is missing\n");
  EXPECT_EQ(mistakes(with("shape: [N * 2]", "shape: [K * 2]")),
            "t:9:48: unknown dim `K` (did you mean `M`?)\n");
  EXPECT_EQ(mistakes(with("normal(0, 1 / sqrt(N))", "normal(0)")),
            "t:8:58: wrong number of arguments of `normal` (normal(mean, deviation))\n");
  EXPECT_EQ(mistakes(with("normal(0, 1 / sqrt(N))", "norml(0, 1)")),
            "t:8:58: unknown kind of values `norml` (did you mean `normal`?)\n");
  EXPECT_EQ(mistakes(with("normal(0, 1 / sqrt(N))", "normal(0, 1 / sqrt(L))")),
            "t:8:78: unknown dim `L` (did you mean `M`?)\n");
  EXPECT_EQ(mistakes(with("\"integers(0, N)\"", "\"normal(0, 1)\"")),
            "t:10:43: `normal` does not make values of type int64\n");
  EXPECT_EQ(mistakes(with("values: permutation", "values: zeros")), "");
  EXPECT_EQ(mistakes(with(", values: permutation", "")),
            "t:11:10: `values` is missing: integers have no default (values: integers(0, N))\n");
  EXPECT_EQ(mistakes(with("out1:", "out2:")), "t:15:3: output 2 of 2 must be named `out1`\n");
  EXPECT_EQ(mistakes(with("eps: float, k: int", "k: int, eps: float")),
            "t:16:12: the parameters of forward(…) must be the inputs and the scalars, in order (forward(x: "
            "Tensor, w: "
            "Tensor, ids: Tensor, order: Tensor, eps: float, k: int))\n");
  EXPECT_EQ(mistakes(with("def forward(", "def go(")),
            "t:16:12: the reference has no function `forward(…)`\n");
  EXPECT_EQ(mistakes(with("k: 3", "N: 3")).substr(0, 30), "t:12:24: `N` is defined twice\n");
  EXPECT_EQ(mistakes(with("k: 3", "min: 3")).substr(0, 64),
            "t:12:24: `min` has a meaning in launch plans (take another name)");
  EXPECT_EQ(mistakes(with("{M: 1, N: 1}", "{M: 3, N: 1000}")), "t:24:5: this shape is listed twice\n");
  EXPECT_EQ(mistakes(with("{M: 1, N: 1}", "{M: 256, N: 512}")),
            "t:24:5: this shape is in `timing` already\n");
  EXPECT_EQ(mistakes(with("memory: 64MiB", "memory: 1MiB")).substr(0, 63),
            "t:21:5: the tensors of this shape take more than `memory`, 1.0 ");
  EXPECT_EQ(mistakes(with("\"uniform(-1, 1)\"", "\"uniform(1, 1)\"")).substr(0, 52),
            "t:21:5: values `uniform`: the range is empty\nt:23:5:");
  EXPECT_EQ(mistakes(with("flops: 2 * M * N", "flops: 0 - M")).substr(0, 45),
            "t:21:5: `flops` is negative at this shape\nt:2");
  EXPECT_EQ(mistakes(with("reference: |", "reference: \"\"\nold: |")).substr(0, 60),
            "t:16:12: the reference has no function `forward(…)`\nt:17:1");
  EXPECT_EQ(mistakes(with("flops: 2 * M * N", "flops: M * 9223372036854775807")).substr(0, 73),
            "t:21:5: `flops` or `bytes` at this shape: the result does not fit 64 bits");
}

TEST_F(LoadTask, ValuesWithinValues) {
  const auto text =
      with("{x: \"uniform(-1, 1)\"}",
           "{x: \"mix(min(1, 2 / N), choice(nan, inf, -inf, -0.0), sorted( by_row(normal(0, 1)) ))\", "
           "ids: \"descending(choice(0, N - 1))\"}");
  Diagnostics diagnostics;
  const auto task = load_task(write("t", text), diagnostics);
  for (const Diagnostic& diagnostic : diagnostics) ADD_FAILURE() << to_string(diagnostic);
  ASSERT_TRUE(task);
  const ValueSpec& mix = task->distributions[0].at("x");
  EXPECT_EQ(mix.kind, "mix");
  ASSERT_EQ(mix.arguments.size(), 1u);
  EXPECT_EQ(value_argument(mix, 0, {{"M", 1}, {"N", 8}}), 0.25);
  ASSERT_EQ(mix.parts.size(), 2u);
  ASSERT_EQ(mix.parts[0].arguments.size(), 4u);
  EXPECT_TRUE(std::isnan(value_argument(mix.parts[0], 0, {})));
  EXPECT_EQ(value_argument(mix.parts[0], 2, {}), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::signbit(value_argument(mix.parts[0], 3, {})));
  EXPECT_EQ(mix.parts[1].kind, "sorted");
  EXPECT_EQ(mix.parts[1].parts.at(0).kind, "by_row");
  EXPECT_EQ(mix.parts[1].parts[0].parts.at(0).kind, "normal");
  EXPECT_EQ(task->distributions[0].at("ids").parts.at(0).kind, "choice");
}

TEST_F(LoadTask, MistakesInValuesWithinValues) {
  const auto told = [&](const std::string& values) { return mistakes(with("\"uniform(-1, 1)\"", values)); };
  EXPECT_EQ(told("\"choice()\""),
            "t:26:9: wrong number of arguments of `choice` (choice(a, b, …), 1 to 16 numbers)\n");
  EXPECT_EQ(told("choice"),
            "t:26:9: wrong number of arguments of `choice` (choice(a, b, …), 1 to 16 numbers)\n");
  EXPECT_EQ(told("\"mix(0.5, normal(0, 1))\""),
            "t:26:9: wrong number of arguments of `mix` (mix(p, values, other values))\n");
  EXPECT_EQ(told("\"mix(0.5, normal(0, 1), norml(0, 1))\""),
            "t:26:9: unknown kind of values `norml` (did you mean `normal`?)\n");
  EXPECT_EQ(told("\"mix(0.5, normal(0, L), ones)\""), "t:26:29: unknown dim `L` (did you mean `M`?)\n");
  EXPECT_EQ(told("\"sorted(normal(0, 1)\""), "t:26:9: `normal(0, 1`: `)` is missing\n");
  EXPECT_EQ(told("\"sorted(integers(0, 1), 2)\""),
            "t:26:9: wrong number of arguments of `sorted` (sorted(values))\n");
  EXPECT_EQ(told("\"sorted(permutation)\""), "t:26:9: `permutation` does not make values of type float32\n");
  EXPECT_EQ(told("\"normal(0, inf)\"").substr(0, 45), "t:21:5: values `normal`: `inf` is not finite\n");
  EXPECT_EQ(told("\"mix(1.5, ones, zeros)\"").substr(0, 53),
            "t:21:5: values `mix`: p is not between 0 and 1\nt:23:5");
  EXPECT_EQ(told("\"by_row(uniform(1, 1))\"").substr(0, 46),
            "t:21:5: values `uniform`: the range is empty\nt");
  EXPECT_EQ(told("\"choice(1e39)\"").substr(0, 64),
            "t:21:5: values `choice`: `1e39` is not a number of type float32\n");
  std::string deep = "ones";
  for (int i = 0; i < 1000; ++i) deep = "sorted(" + deep + ")";
  EXPECT_EQ(told("\"" + deep + "\""), "t:26:9: values within values more than 8 deep\n");
  const auto of_ids = [&](const std::string& values) {
    return mistakes(with("{x: \"uniform(-1, 1)\"}", "{ids: \"" + values + "\"}")).substr(0, 61);
  };
  EXPECT_EQ(of_ids("choice(nan)"), "t:21:5: values `choice`: `nan` is not a number of type int64\n");
  EXPECT_EQ(of_ids("choice(0.5)"), "t:21:5: values `choice`: `0.5` is not a number of type int64\n");
  EXPECT_EQ(mistakes(with("\"integers(0, N)\"", "\"sorted(integers(0, N))\"")),
            "t:10:43: `sorted` is for `distributions` alone: timed calls have values that a GPU draws\n");
}

// A GPU draws the numbers of a choice as base + k * step: such ones may be an input's own.
TEST_F(LoadTask, AnInputsOwnChoiceIsEven) {
  const auto own = [&](const std::string& values) {
    return mistakes(with("normal(0, 1 / sqrt(N))", values));
  };
  for (const char* even : {"choice(-1, 1)", "choice(0.25)", "choice(1, 0.5, 0, -0.5)", "choice(0, N - 1)"})
    EXPECT_EQ(own(even), "") << even;
  for (const char* uneven :
       {"choice(0, 1, 3)", "choice(0, 0.1, 0.2, 0.3)", "choice(-0.0, 0.0)", "choice(nan)"})
    EXPECT_EQ(
        own(uneven).substr(0, 120),
        "t:21:5: values `choice`: its numbers are not evenly spaced; such a choice is for `distributions` "
        "alone\nt:23:5: values `c")
        << uneven;
  const std::string sixteen = "choice(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15";
  EXPECT_EQ(own(sixteen + ")"), "");
  EXPECT_NE(own(sixteen + ", 16)"), "");
}

TEST_F(LoadTask, WhatPreparesItsInputs) {
  const auto told = [&](const std::string& prepare) {
    return mistakes(with("timing:\n", "prepare: " + prepare + "\ntiming:\n"));
  };
  Diagnostics diagnostics;
  const std::string text =
      with("timing:\n",
           "prepare: |\n  def prepare(ids: Tensor,\n              x: Tensor) -> Tuple[Tensor, Tensor]:\n"
           "    return ids.sort()[0], x.abs()\ntiming:\n");
  const auto task = load_task(write("t", text), diagnostics);
  ASSERT_TRUE(task) << to_string(diagnostics.at(0));
  EXPECT_EQ(task->prepare.substr(0, 12), "def prepare(");
  EXPECT_EQ(task->prepared, (std::vector<std::size_t>{2, 0}));
  EXPECT_NE(task->digest, sha256_hex(kGood));
  EXPECT_EQ(told("\"def prepare(x: Tensor) -> Tensor: return x.abs()\""), "");
  EXPECT_EQ(told("\"def forward(x: Tensor) -> Tensor: return x\""),
            "t:20:10: there is no function `prepare(…)`\n");
  EXPECT_EQ(told("\"def prepare(id: Tensor) -> Tensor: return id\""),
            "t:20:10: `id` of prepare(…) is no input of role data (did you mean `ids`?)\n");
  EXPECT_EQ(told("\"def prepare(w: Tensor) -> Tensor: return w\"").substr(0, 53),
            "t:20:10: `w` of prepare(…) is no input of role data");
  EXPECT_EQ(told("\"def prepare(x: Tensor, x: Tensor) -> Tensor: return x\""),
            "t:20:10: prepare(…) takes `x` twice\n");
  EXPECT_EQ(told("\"def prepare(x: float) -> Tensor: return x\""),
            "t:20:10: `x: float` of prepare(…) is no Tensor\n");
  EXPECT_EQ(told("\"def prepare() -> Tensor: return 1\""), "t:20:10: prepare(…) takes no input\n");
  for (const char* result : {"", " -> Tensor", " -> Tuple[Tensor, Tensor, Tensor]"})
    EXPECT_EQ(
        told(std::string("\"def prepare(x: Tensor, ids: Tensor)") + result + ": return x\""),
        "t:20:10: prepare(…) must give a tensor for each input that it takes (-> Tuple[Tensor, Tensor])\n");
  std::string strided = with("shape: [M, N], values:", "shape: [M, N], strides: [2 * N, 1], values:");
  strided.insert(strided.find("timing:"), "prepare: \"def prepare(x: Tensor) -> Tensor: return x\"\n");
  EXPECT_EQ(mistakes(strided), "t:20:10: input `x` of prepare(…) has `strides`\n");
}

TEST_F(LoadTask, RowsWithGapsAreNotSorted) {
  std::string text = with("shape: [M, N], values:", "shape: [M, N], strides: [2 * N, 1], values:");
  const std::size_t at = text.find("\"uniform(-1, 1)\"");
  EXPECT_EQ(mistakes(text.replace(at, 16, "sorted(ones)")),
            "t:26:9: `sorted` goes by rows without gaps, and `x` has `strides`\n");
}

TEST_F(LoadTask, TheSignOfAZeroCountsWhereAnOutputSaysSo) {
  Diagnostics diagnostics;
  const auto task =
      load_task(write("t", with("out1: {shape: []}", "out1: {shape: [], signed_zeros: true}")), diagnostics);
  ASSERT_TRUE(task);
  EXPECT_FALSE(task->outputs[0].signed_zeros);
  EXPECT_TRUE(task->outputs[1].signed_zeros);
  EXPECT_EQ(mistakes(with("out1: {shape: []}", "out1: {dtype: int32, shape: [], signed_zeros: true}")),
            "t:15:49: `signed_zeros`: a zero of type int32 has no sign\n");
}

TEST(Cudnn, TheDatasetsOperatorsAreRead) {
  const auto cudnn = [](const std::string& id) {
    Diagnostics diagnostics;
    const auto task = load_task(std::filesystem::path(WARPSMITH_SOURCE_DIR) / "datasets" / id, diagnostics);
    EXPECT_TRUE(task && diagnostics.empty()) << id;
    return task ? task->cudnn : std::nullopt;
  };
  const auto convolution = cudnn("conv2d_3x3");
  ASSERT_TRUE(convolution);
  EXPECT_EQ(convolution->op, "convolution");
  EXPECT_EQ(convolution->inputs, (std::vector<std::string>{"x", "w"}));
  EXPECT_EQ(convolution->padding, (std::vector<int>{1, 1}));
  EXPECT_EQ(convolution->stride, (std::vector<int>{1, 1}));
  const auto pool = cudnn("max_pool_2x2");
  ASSERT_TRUE(pool);
  EXPECT_EQ(pool->window, (std::vector<int>{2, 2}));
  EXPECT_EQ(pool->stride, pool->window);
  EXPECT_EQ(cudnn("column_sum")->axes, std::vector<int>{0});
  EXPECT_TRUE(cudnn("sum_all")->axes.empty());
  EXPECT_EQ(cudnn("matmul_small")->inputs, (std::vector<std::string>{"x", "w"}));
  EXPECT_EQ(cudnn("layer_norm")->inputs, (std::vector<std::string>{"x", "w", "b"}));
  EXPECT_EQ(cudnn("layer_norm")->epsilon, 1e-5);
  EXPECT_EQ(cudnn("rms_norm")->inputs, (std::vector<std::string>{"x", "w"}));
  const auto chain = cudnn("gate_bias_clamp");
  ASSERT_TRUE(chain);
  EXPECT_EQ(chain->inputs, std::vector<std::string>{"x"});
  ASSERT_EQ(chain->steps.size(), 4u);
  EXPECT_EQ(chain->steps[0].op, "mul");
  EXPECT_EQ(chain->steps[0].operand, "w");
  EXPECT_EQ(chain->steps[2].op, "max");
  EXPECT_EQ(chain->steps[2].operand, "");
  EXPECT_EQ(chain->steps[2].number, -1);
  EXPECT_EQ(cudnn("residual_relu_scale")->steps[2].number, 0.5);  // a scalar's
  EXPECT_FALSE(cudnn("transpose"));
}

TEST_F(LoadTask, MistakesInAnOperatorOfCudnn) {
  const auto told = [&](const std::string& key) { return mistakes(with("math: torch_default", key)); };
  EXPECT_NE(told("cudnn: {op: conv}").find("`op`: `conv` is not known"), std::string::npos)
      << told("cudnn: {op: conv}");
  EXPECT_NE(told("cudnn: {op: relu, window: [2, 2]}").find("`window`"), std::string::npos);
  EXPECT_NE(told("cudnn: {op: max_pool, inputs: [x]}").find("`window`"), std::string::npos);
  EXPECT_NE(told("cudnn: {op: max_pool, inputs: [x], window: [2]}").find("[height, width]"),
            std::string::npos);
  EXPECT_NE(told("cudnn: {op: relu, inputs: [nothing]}").find("there is no input `nothing`"),
            std::string::npos);
  EXPECT_NE(told("cudnn: {op: relu, inputs: [x, w]}").find("takes 1 input"), std::string::npos);
  EXPECT_NE(told("cudnn: {op: sum, inputs: [x], axes: [7]}").find("has no axis 7"), std::string::npos);
  EXPECT_NE(told("cudnn: {op: relu, inputs: [x]}").find("has one output"),
            std::string::npos);  // this task has two
}

TEST_F(LoadTask, MistakesInAGraphOfCudnn) {
  // A task of one output; the key is its last line.
  const auto told = [&](const std::string& key) {
    return mistakes(R"yaml(schema: warpsmith.task/1
title: A test
level: 2
split: extra
ops: [bias]
dims: [M, N]
inputs:
  x: {shape: [M, N]}
  b: {shape: [N]}
  t: {shape: [M, M, N]}
  h: {dtype: float16, shape: [N]}
scalars: {eps: 1.0e-5}
outputs:
  out: {shape: [M, N]}
reference: |
  def forward(x: Tensor, b: Tensor, t: Tensor, h: Tensor, eps: float) -> Tensor:
    return x + b
timing:
  - {M: 4, N: 8}
hidden:
  - {M: 1, N: 1}
cudnn: )yaml" + key +
                    "\n");
  };
  EXPECT_EQ(told("{op: pointwise, steps: [add b, relu, mul eps, max -1.5, gelu]}"), "");
  EXPECT_EQ(told("{op: rms_norm, inputs: [x, b], epsilon: 1e-6}"), "");
  EXPECT_EQ(told("{op: layer_norm, inputs: [x, b, b], epsilon: eps}"), "");
  EXPECT_EQ(told("{op: matmul, inputs: [x, x]}"), "");

  EXPECT_EQ(told("{op: pointwise}"), "t:22:8: `cudnn`: key `steps` is missing\n");
  EXPECT_EQ(told("{op: pointwise, steps: []}"), "t:22:31: a chain has 1 to 16 steps\n");
  EXPECT_EQ(told("{op: pointwise, steps: [relux]}"),
            "t:22:32: unknown step `relux` (did you mean `relu`?)\n");
  EXPECT_EQ(told("{op: pointwise, steps: [relu b]}"), "t:22:32: `relu` has no second operand\n");
  EXPECT_EQ(told("{op: pointwise, steps: [relu, add]}"),
            "t:22:38: `add` has a second operand (`add NAME`, or a number)\n");
  EXPECT_EQ(told("{op: pointwise, steps: [add c]}"), "t:22:32: `c` is no input, no scalar and no number\n");
  EXPECT_EQ(told("{op: pointwise, steps: [add 1e999]}"),
            "t:22:32: `1e999` is no input, no scalar and no number\n");
  EXPECT_EQ(told("{op: pointwise, steps: [add h]}"),
            "t:22:32: cuDNN is called for float32 alone, and `h` is float16\n");
  EXPECT_EQ(told("{op: pointwise, steps: [add t]}"), "t:22:32: `t` has more dimensions than `x`\n");
  EXPECT_EQ(told("{op: pointwise, inputs: [t], steps: [relu]}"),
            "t:22:13: `pointwise` gives as many dimensions as `t` has\n");
  EXPECT_EQ(told("{op: pointwise, inputs: [x, b], steps: [relu]}"), "t:22:32: `pointwise` takes 1 input\n");

  EXPECT_EQ(told("{op: layer_norm, inputs: [x, b, b]}"), "t:22:8: `cudnn`: key `epsilon` is missing\n");
  EXPECT_EQ(told("{op: layer_norm, inputs: [x, b, b], epsilon: e}"),
            "t:22:53: `epsilon` is neither a number nor a scalar of the task: `e`\n");
  EXPECT_EQ(told("{op: layer_norm, inputs: [x, b, b], epsilon: -1}"), "t:22:53: `epsilon` is negative\n");
  EXPECT_EQ(told("{op: layer_norm, inputs: [x, b], epsilon: eps}"), "t:22:33: `layer_norm` takes 3 inputs\n");
  EXPECT_EQ(told("{op: rms_norm, inputs: [x], epsilon: eps}"), "t:22:31: `rms_norm` takes 2 or 3 inputs\n");
  EXPECT_EQ(told("{op: rms_norm, inputs: [x, t], epsilon: eps}"),
            "t:22:31: the weights of `rms_norm` lie along the last dimensions of its data\n");
  EXPECT_NE(told("{op: matmul, inputs: [x, b]}")
                .find("`matmul` takes two tensors of equally many dimensions, two or more"),
            std::string::npos);
  EXPECT_NE(told("{op: matmul, inputs: [x, x], epsilon: 1}").find("`epsilon`"), std::string::npos);
}

TEST_F(LoadTask, TellsAllMistakesAtOnce) {
  std::string text = with("level: 2", "level: 4");
  text += "tollerance: 1\n";
  text.replace(text.find("math: torch_default"), 19, "math: fast");
  const std::string lines = mistakes(text);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 3) << lines;
  EXPECT_NE(lines.find("did you mean `tolerance`?"), std::string::npos) << lines;
}

TEST_F(LoadTask, AMissingFileIsAMistake) {
  Diagnostics diagnostics;
  EXPECT_FALSE(load_task(root_ / "nothing", diagnostics));
  EXPECT_EQ(diagnostics.size(), 1u);
}

TEST_F(LoadTask, AFolderNameMustBeAName) {
  Diagnostics diagnostics;
  EXPECT_FALSE(load_task(write("a-b", kGood), diagnostics));
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_EQ(diagnostics[0].message, "the folder's name `a-b` is the task's id: letters, digits and _");
}

TEST_F(LoadTask, TasksAreSortedAndOtherFoldersIgnored) {
  write("zeta", kGood);
  write("alpha", kGood);
  make_folders(root_ / "notes");
  Diagnostics diagnostics;
  const std::vector<Task> tasks = load_tasks(root_, diagnostics);
  EXPECT_TRUE(diagnostics.empty());
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[0].id, "alpha");
  EXPECT_EQ(tasks[1].id, "zeta");
  load_tasks(root_ / "nowhere", diagnostics);
  EXPECT_EQ(diagnostics.size(), 1u);
}

TEST_F(LoadTask, CandidateFilesByExpectedVerdict) {
  Diagnostics diagnostics;
  const auto task = load_task(write("t", kGood), diagnostics);
  ASSERT_TRUE(task);
  EXPECT_TRUE(load_candidate_files(*task, diagnostics).empty());
  for (const char* folder : {"ok", "wrong_hidden"}) make_folders(task->folder / "candidates" / folder);
  write_file_atomic(task->folder / "candidates/ok/b.cu", "B");
  write_file_atomic(task->folder / "candidates/ok/a.cu", "A");
  write_file_atomic(task->folder / "candidates/wrong_hidden/c.cu", "C");
  const std::vector<CandidateFile> files = load_candidate_files(*task, diagnostics);
  EXPECT_TRUE(diagnostics.empty());
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].name, "a");
  EXPECT_EQ(files[0].expected, "ok");
  EXPECT_EQ(files[1].source, "B");
  EXPECT_EQ(files[2].expected, "wrong_hidden");
  make_folders(task->folder / "candidates/wrong_outputs");
  write_file_atomic(task->folder / "candidates/ok/notes.txt", "");
  load_candidate_files(*task, diagnostics);
  ASSERT_EQ(diagnostics.size(), 2u);
  EXPECT_EQ(diagnostics[0].hint, "did you mean `wrong_output`?");
  EXPECT_EQ(diagnostics[1].message, "a candidate's file ends in .cu");
}

TEST_F(LoadTask, ACandidateIsTextInAFile) {
  Diagnostics diagnostics;
  const auto task = load_task(write("t", kGood), diagnostics);
  ASSERT_TRUE(task);
  const std::filesystem::path ok = task->folder / "candidates/ok";
  make_folders(ok);
  write_file_atomic(ok / "a.cu", "// \xc3\xa9 is fine\n// and \xff not\n");
  ASSERT_EQ(::mkfifo((ok / "b.cu").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", ok / "c.cu");
  write_file_atomic(ok / "d.cu", std::string(1 << 20, 'x'));
  write_file_atomic(ok / "e.cu", std::string((1 << 20) + 1, 'x'));
  const std::vector<CandidateFile> files = load_candidate_files(*task, diagnostics);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].name, "d");
  std::vector<std::string> told;
  for (const Diagnostic& one : diagnostics) told.push_back(to_string(one).substr(ok.string().size() + 1));
  const std::string cannot = "cannot read " + ok.string();
  EXPECT_EQ(told, (std::vector<std::string>{"a.cu:2:8: byte 0xff is not UTF-8 (save the file as UTF-8)",
                                            "b.cu: " + cannot + "/b.cu: it is no regular file",
                                            "c.cu: " + cannot + "/c.cu: it is no regular file",
                                            "e.cu: " + cannot + "/e.cu: it is larger than 1.0 MiB"}));
}

TEST(Shape, OverflowIsAnError) {
  TensorSpec spec;
  spec.name = "x";
  spec.shape = {Expression::parse("N"), Expression::parse("N"), Expression::parse("N")};
  EXPECT_THROW(shape_at(spec, {{"N", 1 << 21}}), Error);
  spec.shape = {Expression::parse("N - 2")};
  EXPECT_THROW(shape_at(spec, {{"N", 1}}), Error);
  EXPECT_THROW(shape_at(spec, {{"M", 1}}), Error);
}

TEST(Dtype, NamesAndSizes) {
  for (int i = 0; i <= static_cast<int>(Dtype::kBool); ++i) {
    const Dtype dtype = static_cast<Dtype>(i);
    EXPECT_EQ(parse_dtype(to_string(dtype)), dtype);
  }
  EXPECT_FALSE(parse_dtype("float"));
  EXPECT_EQ(size_of(Dtype::kFloat64), 8u);
  EXPECT_EQ(size_of(Dtype::kBfloat16), 2u);
  EXPECT_TRUE(is_floating(Dtype::kFloat8E5m2));
  EXPECT_FALSE(is_floating(Dtype::kBool));
}

std::string with_input(const std::string& input) {
  std::string text = kGood;
  const std::string line =
      "  x: {role: data, dtype: float32, shape: [M, N], values: \"normal(0, 1 / sqrt(N))\"}";
  return text.replace(text.find(line), line.size(), "  x: " + input);
}

TEST_F(LoadTask, HowAnInputLiesInMemory) {
  Diagnostics diagnostics;
  const auto task =
      load_task(write("t", with_input("{shape: [M, N], strides: [2 * N, 1], offset: N + 1}")), diagnostics);
  ASSERT_TRUE(task) << to_string(diagnostics.front());
  const TensorSpec& x = task->inputs[0];
  const Dims dims = {{"M", 3}, {"N", 4}};
  EXPECT_EQ(shape_at(x, dims), (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(strides_at(x, dims), (std::vector<std::int64_t>{8, 1}));
  EXPECT_EQ(memory_shape_at(x, dims), (std::vector<std::int64_t>{20}));
  EXPECT_EQ(misalignment_at(x, dims), 20u);
  EXPECT_EQ(memory_shape_at(x, {{"M", 0}, {"N", 4}}), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(misalignment_at(x, {{"M", 1}, {"N", 63}}), 0u);
  const TensorSpec& w = task->inputs[1];
  EXPECT_EQ(strides_at(w, dims), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(memory_shape_at(w, dims), shape_at(w, dims));
  EXPECT_EQ(misalignment_at(w, dims), 0u);
}

TEST_F(LoadTask, LayoutsThatMakeNoSense) {
  EXPECT_EQ(mistakes(with_input("{shape: [M, N], strides: [1]}")),
            "t:8:31: `strides` must be one for each dimension of `shape`\n");
  EXPECT_NE(
      mistakes(with_input("{shape: [M, N], strides: [0 - N, 1]}")).find("strides of `x`: `0 - N` is -512"),
      std::string::npos);
  EXPECT_NE(mistakes(with_input("{shape: [M, N], offset: 9223372036854775807}"))
                .find("offset of `x`: `9223372036854775807` is 9223372036854775807, over 2147483647"),
            std::string::npos);
  EXPECT_NE(mistakes(with_input("{shape: [M, N], offset: 0 - 1}")).find("offset of `x`: `0 - 1` is -1"),
            std::string::npos);
  EXPECT_NE(
      mistakes(with_input("{shape: [M, N], strides: [N * 1000000, 1]}")).find("take more than `memory`"),
      std::string::npos);
  EXPECT_NE(mistakes(with_input("{dtype: int32, shape: [M, N], strides: [N + 1, 1], values: permutation}"))
                .find("a permutation has no gaps"),
            std::string::npos);
  std::string permuted =
      with_input("{dtype: int32, shape: [M, N], strides: [N + 1, 1], values: \"integers(0, 2)\"}");
  const std::string uniform = "\"uniform(-1, 1)\"";
  permuted.replace(permuted.find(uniform), uniform.size(), "permutation");
  EXPECT_NE(mistakes(permuted).find("a permutation has no gaps, and `x` has `strides`"), std::string::npos);
  EXPECT_NE(mistakes(with_input("{shape: [M, N], strides: [2 * N, 1]}") + "cudnn: {op: relu, inputs: [x]}\n")
                .find("cuDNN is called with contiguous tensors, and `x` has `strides`"),
            std::string::npos);
  EXPECT_NE(mistakes(with_input("{shape: [M, N], stride: [N, 1]}")).find("did you mean `strides`"),
            std::string::npos);
}

// A module in KernelBench's form. What its reference takes behind the inputs is found in the module.
const char* const kModuleTask = R"yaml(schema: warpsmith.task/1
title: A module
level: 1
split: train
ops: [linear]
dims: [BATCH]
inputs:
  x: {shape: [BATCH, 8]}
  w: {shape: [4, 8], role: parameter, state_dict: "linear.weight"}
outputs:
  out: {shape: [BATCH, 4]}
module: reference.py
reference: |
  def forward(x: Tensor, w: Tensor) -> Tensor:
    return torch.linear(x, w)
timing: [{BATCH: 4}]
hidden: [{BATCH: 3}]
)yaml";

std::string with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST_F(LoadTask, AModuleLiesBesideIt) {
  EXPECT_EQ(mistakes(kModuleTask), "t:12:9: `module`: cannot read " + (root_ / "t/reference.py").string() +
                                       ": No such file or directory\n");
  write_file_atomic(root_ / "t/reference.py", "class Model: pass\n");
  EXPECT_EQ(mistakes(kModuleTask), "");
  const auto load = [&] {
    Diagnostics diagnostics;
    return *load_task(root_ / "t", diagnostics);
  };
  const Task task = load();
  EXPECT_EQ(task.module, "class Model: pass\n");
  EXPECT_EQ(task.inputs[1].state_dict, "linear.weight");
  const Task module = as_module(task);
  ASSERT_EQ(module.inputs.size(), 1u);
  ASSERT_EQ(module.state.size(), 1u);
  EXPECT_EQ(module.inputs[0].name, "x");
  EXPECT_EQ(module.state[0].name, "w");
  EXPECT_NE(module.digest, task.digest);
  write_file_atomic(root_ / "t/reference.py", "class Model: ...\n");
  EXPECT_NE(load().digest, task.digest);
}

TEST_F(LoadTask, WhatAModuleAsksOfItsTask) {
  make_folders(root_ / "t");
  write_file_atomic(root_ / "t/reference.py", "class Model: pass\n");
  const std::string other = "module: reference.py", key = ", state_dict: \"linear.weight\"";
  EXPECT_EQ(mistakes(with(kModuleTask, other, "module: ../reference.py")),
            "t:12:9: `module` names a file beside task.yaml (module: reference.py)\n");
  EXPECT_EQ(mistakes(with(kModuleTask, key, "")),
            "t:12:9: input `w` lacks its name in the module (state_dict: \"conv.weight\")\n");
  EXPECT_EQ(mistakes(with(with(kModuleTask, "role: parameter", "role: data"), "x: {shape: [BATCH, 8]}",
                          "x: {shape: [BATCH, 8], role: buffer, state_dict: \"x\"}")),
            "t:9:46: `state_dict` names a parameter or a buffer: give it that role\n"
            "t:12:9: input `w` of role data stands behind parameters or buffers\n");
  write_file_atomic(root_ / "t/reference.py", "");
  EXPECT_EQ(mistakes(kModuleTask), "t:12:9: `module`: reference.py is empty\n");
  write_file_atomic(root_ / "t/reference.py", "\xff");
  EXPECT_EQ(mistakes(kModuleTask), "t:12:9: `module`: reference.py is not UTF-8\n");
}

}  // namespace
}  // namespace warpsmith::task
