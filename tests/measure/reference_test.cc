#include "warpsmith/measure/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "plain_task.h"
#include "torch_flags.h"
#include "torch_program.h"
#include "warpsmith/measure/compare.h"
#include "warpsmith/measure/oracle.h"

namespace warpsmith::measure {
namespace {

using task::Dtype;

task::Task exponential() {
  return make_task("def forward(x, scale: float):\n  return torch.exp(x) * scale\n",
                   {tensor("x", Dtype::kFloat32, {"N"})}, {tensor("out", Dtype::kFloat32, {"N"})});
}

task::Task three_outputs() {
  return make_task("def forward(x):\n  return x * 2, torch.arange(3), x > 0.5\n",
                   {tensor("x", Dtype::kFloat32, {"N"})},
                   {tensor("y", Dtype::kFloat32, {"N"}), tensor("i", Dtype::kInt64, {"N"}),
                    tensor("b", Dtype::kBool, {"N"})});
}

class ReferenceTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { configure_torch(1); }
};

template <typename T>
std::vector<std::span<const std::byte>> bytes(const std::vector<T>& values) {
  return {std::as_bytes(std::span(values))};
}

std::string message(const task::Task& task) {
  try {
    const Reference reference(task);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST_F(ReferenceTest, RunsWithScalars) {
  task::Task task = exponential();
  task.scalars = {{"scale", true, 2.0}};
  const Reference reference(task);
  const std::vector<float> x = {0, 1};
  const std::vector<OutputValues> out = reference.run({{"N", 2}}, bytes(x));
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].shape, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(out[0].reals[0], 2.0);
  EXPECT_EQ(out[0].reals[1], static_cast<double>(std::exp(1.0f) * 2));
}

// Each sets those of its own task, also where another has run in between.
TEST_F(ReferenceTest, TorchsFlagsAreThoseOfTheTaskThatRuns) {
  task::Task task = exponential();
  task.scalars = {{"scale", true, 2.0}};
  const Reference strict(task);
  task.math = "torch_default";
  const Reference loose(task);
  std::vector<float> x = {0, 1};
  EXPECT_TRUE(is_strict());
  loose.run({{"N", 2}}, bytes(x));
  EXPECT_TRUE(is_torch_default());
  strict.run({{"N", 2}}, bytes(x));
  EXPECT_TRUE(is_strict());
  loose.run_oracle({{"N", 2}}, bytes(x));
  EXPECT_TRUE(is_torch_default());
  Reference::Calls calls = strict.bind({{"N", 2}}, {{std::as_writable_bytes(std::span(x))}});
  Reference::Calls others = loose.bind({{"N", 2}}, {{std::as_writable_bytes(std::span(x))}});
  EXPECT_TRUE(is_torch_default()) << "nothing has run";
  calls.run(0, 1);
  EXPECT_TRUE(is_strict());
  others.run(0, 1);
  EXPECT_TRUE(is_torch_default());
  configure_torch(1);
  EXPECT_TRUE(is_strict());
}

TEST_F(ReferenceTest, TheOracleIsInDoubles) {
  task::Task task = exponential();
  task.scalars = {{"scale", true, 0.1}};
  const Reference reference(task);
  const std::vector<float> x = {1};
  const double oracle = reference.run_oracle({{"N", 1}}, bytes(x))[0].reals[0];
  EXPECT_DOUBLE_EQ(oracle, std::exp(1.0) * 0.1);
  EXPECT_NE(oracle, reference.run({{"N", 1}}, bytes(x))[0].reals[0]);
}

// As a matrix unit reads floats: ten bits of mantissa, the nearest.
TEST_F(ReferenceTest, RoundedArgumentsAreTf32) {
  const Reference reference(make_task("def forward(x):\n  return x\n", {tensor("x", Dtype::kFloat32, {"N"})},
                                      {tensor("out", Dtype::kFloat32, {"N"})}));
  std::vector<float> x = {1.f, 1.f + 0x1p-10f, 1.f + 0x1p-12f, 1.f + 0x1.8p-11f, -3.f - 0x1p-22f, 0.f};
  const std::vector<double> right = {1, 1 + 0x1p-10, 1, 1 + 0x1p-10, -3, 0};
  EXPECT_EQ(reference.run_rounded({{"N", 6}}, bytes(x))[0].reals, right);
  const std::span<std::byte> memory = std::as_writable_bytes(std::span(x));
  Reference::Calls calls = reference.bind_rounded({{"N", 6}}, {{memory}});
  calls.run(0, 1);
  EXPECT_EQ(calls.outputs(0)[0].reals, right);
  EXPECT_EQ(x[2], 1.f + 0x1p-12f) << "the operands themselves stay";
  EXPECT_DOUBLE_EQ(tf32_bound(0.5), 1.5);
}

// cuDNN's convolutions may round so, on a GPU and where the task lets torch do as it does.
TEST_F(ReferenceTest, OnlyAGpuRoundsToTf32) {
  task::Task task = make_task("def forward(x, w):\n  return torch.conv1d(x, w)\n",
                              {tensor("x", Dtype::kFloat32, {"N"}), tensor("w", Dtype::kFloat32, {"N"})},
                              {tensor("out", Dtype::kFloat32, {"N"})});
  task.math = "torch_default";
  EXPECT_FALSE(Reference(task).rounds_to_tf32());
}

TEST_F(ReferenceTest, SeveralOutputsOfSeveralTypes) {
  const task::Task task =
      make_task("def forward(x):\n  return torch.max(x, 0)\n", {tensor("x", Dtype::kFloat32, {"N"})},
                {tensor("out0", Dtype::kFloat32, {}), tensor("out1", Dtype::kInt64, {})});
  const Reference reference(task);
  const std::vector<float> x = {3, 9, 4};
  const std::vector<OutputValues> out = reference.run({{"N", 3}}, bytes(x));
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].reals, (std::vector<double>{9}));
  EXPECT_EQ(out[1].integers, (std::vector<std::int64_t>{1}));
  EXPECT_EQ(reference.run_oracle({{"N", 3}}, bytes(x))[1].integers, (std::vector<std::int64_t>{1}));
}

TEST_F(ReferenceTest, MistakesNameTheTask) {
  task::Task task = exponential();
  task.reference = "def forward(x, scale: float):\n  return torch.expp(x)\n";
  EXPECT_NE(message(task).find("/nowhere/sample/task.yaml: reference: "), std::string::npos) << message(task);
  EXPECT_NE(message(task).find("expp"), std::string::npos) << message(task);
  task.reference = "def other(x):\n  return x\n";
  EXPECT_EQ(message(task), "/nowhere/sample/task.yaml: reference: there is no function `forward`");
  task.reference = "def forward(x):\n  return x\n";
  task.scalars = {{"scale", true, 1}};
  EXPECT_EQ(
      message(task),
      "/nowhere/sample/task.yaml: reference: `forward` takes 1 arguments, the task has 2 inputs and scalars");
}

TEST_F(ReferenceTest, AnOutputUnlikeTheTasksIsAnError) {
  const std::vector<float> x = {1, 2};
  task::Task task = make_task("def forward(x):\n  return x.sum()\n", {tensor("x", Dtype::kFloat32, {"N"})},
                              {tensor("out", Dtype::kFloat32, {"N"})});
  EXPECT_THROW(Reference(task).run({{"N", 2}}, bytes(x)), Error);
  task.reference = "def forward(x):\n  return x > 0\n";
  EXPECT_THROW(Reference(task).run({{"N", 2}}, bytes(x)), Error);
  task.reference = "def forward(x):\n  return x, x\n";
  EXPECT_THROW(Reference(task).run({{"N", 2}}, bytes(x)), Error);
  task.reference = "def forward(x):\n  return x.view(3, 5)\n";
  EXPECT_THROW(Reference(task).run({{"N", 2}}, bytes(x)), Error);
}

TEST_F(ReferenceTest, WhatDoesNotFitIsSaidFirst) {
  EXPECT_EQ(
      in_a_line(std::runtime_error(
          "The following operation failed in the TorchScript interpreter.\nTraceback\nRuntimeError: CUDA "
          "out of memory. Tried to allocate 8.00 GiB. GPU 0 has a total capacity of 79.18 GiB of which 4.04 "
          "GiB is free. Including non-PyTorch memory, this process has 57.74 GiB memory in use.")),
      "it does not fit on this GPU: it wants another 8.00 GiB, and of 79.18 GiB 4.04 GiB are free");
  EXPECT_EQ(in_a_line(std::runtime_error("RuntimeError: CUDA out of memory.")),
            "it does not fit on this GPU: RuntimeError: CUDA out of memory.");
  EXPECT_EQ(in_a_line(std::runtime_error("a\nRuntimeError: no")), "RuntimeError: no");
}

TEST_F(ReferenceTest, BoundCallsHaveOperandsAndOutputsOfTheirOwn) {
  task::Task task = exponential();
  task.scalars = {{"scale", true, 1.0}};
  const Reference reference(task);
  std::vector<float> a = {0}, b = {1};
  Reference::Calls calls = reference.bind(
      {{"N", 1}}, {{std::as_writable_bytes(std::span(a))}, {std::as_writable_bytes(std::span(b))}});
  EXPECT_GT(calls.run(0, 2), 0);
  EXPECT_EQ(calls.outputs(0)[0].reals[0], 1.0);
  EXPECT_EQ(calls.outputs(1)[0].reals[0], static_cast<double>(std::exp(1.0f)));
  a[0] = 2;  // the binding reads the memory at each run
  calls.run(0, 1);
  EXPECT_EQ(calls.outputs(0)[0].reals[0], static_cast<double>(std::exp(2.0f)));
  EXPECT_EQ(calls.output_memory().size(), 1u);
  calls.drop_outputs();
  EXPECT_TRUE(calls.output_memory().empty());
}

TEST_F(ReferenceTest, ComparesWhereOutputsLieAsOnTheHost) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  task::Task task = three_outputs();
  for (const bool signed_zeros : {false, true}) {
    task.outputs[0].signed_zeros = signed_zeros;
    const Reference reference(task);
    for (std::vector<float> x :
         {std::vector<float>{0, 1, 2}, {0, 1, nan}, {-inf, 0, 2}, {inf, 3e38f, -3e38f}}) {
      Reference::Calls calls = reference.bind({{"N", 3}}, {{std::as_writable_bytes(std::span(x))}});
      calls.run(0, 1);
      std::vector<OutputValues> right = calls.outputs(0);
      right[0].signed_zeros = signed_zeros;
      for (const float a : {0.f, -0.f, -inf, inf, nan})
        for (const float b : {2.f, 2.125f, inf, -inf, 0.f, -0.f})
          for (const float c : {4.f, 4.25f, nan, inf, -inf})
            for (const double bound : {1e-6, 0.125, 1e300})
              for (const std::uint8_t last : std::vector<std::uint8_t>{1, 2}) {
                const std::vector<float> reals{a, b, c};
                const std::vector<std::int64_t> integers{0, 1, last == 2 ? 3 : 2};
                const std::vector<std::uint8_t> bools{0, 1, last};
                const std::vector<std::span<const std::byte>> got{bytes(reals)[0], bytes(integers)[0],
                                                                  bytes(bools)[0]};
                const auto there = calls.compare(0, got, {bound, 0, 0});
                for (std::size_t i = 0; i < 3; ++i) {
                  const Comparison by_host = compare(got[i], right[i], i == 0 ? bound : 0);
                  EXPECT_EQ(there[i].agrees, by_host.agrees);
                  EXPECT_EQ(there[i].max_error, by_host.max_error);
                  EXPECT_EQ(there[i].wrong, by_host.wrong) << i << ": " << a << " " << b << " " << c;
                  EXPECT_EQ(there[i].worst, by_host.worst) << i << ": " << a << " " << b << " " << c;
                  EXPECT_EQ(describe(there[i], "out", right[i]), describe(by_host, "out", right[i]));
                }
              }
    }
  }
}

TEST_F(ReferenceTest, ComparesWholeOutputsAlone) {
  const Reference reference(three_outputs());
  std::vector<float> x = {0, 1, 2};
  Reference::Calls calls = reference.bind({{"N", 3}}, {{std::as_writable_bytes(std::span(x))}});
  calls.run(0, 1);
  EXPECT_THROW(calls.compare(0, {}, {}), Error);
  EXPECT_THROW(calls.compare(0, {bytes(x)[0], bytes(x)[0], bytes(x)[0]}, {0, 0, 0}), Error);
}

TEST_F(ReferenceTest, ComparesByIndicesNotByMemory) {
  const Reference reference(make_task("def forward(x):\n  return x.t()\n",
                                      {tensor("x", Dtype::kFloat32, {"M", "N"})},
                                      {tensor("out", Dtype::kFloat32, {"N", "M"})}));
  std::vector<float> x = {0, 1, 2, 3, 4, 5};
  Reference::Calls calls = reference.bind({{"M", 2}, {"N", 3}}, {{std::as_writable_bytes(std::span(x))}});
  calls.run(0, 1);
  const std::vector<float> right{0, 3, 1, 4, 2, 5};
  EXPECT_EQ(calls.compare(0, bytes(right), {1e-6})[0].wrong, 0);
  EXPECT_EQ(calls.compare(0, bytes(x), {1e-6})[0].wrong, 4);
}

// What a GPU's checks ask at large shapes is what the oracle asks.
TEST_F(ReferenceTest, BoundsOfCallsAreThoseOfTheOracle) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Reference reference(make_task("def forward(x):\n  return (x.exp(), x.argmax(0))\n",
                                      {tensor("x", Dtype::kFloat32, {"N"})},
                                      {tensor("a", Dtype::kFloat32, {"N"}), tensor("b", Dtype::kInt64, {})}));
  for (std::vector<float> x : {std::vector<float>{0, 1, 2.5f, -3}, {0, nan, 1, 2}, {-inf, 100, 1, 88.72f}}) {
    const std::vector<std::span<std::byte>> inputs{std::as_writable_bytes(std::span(x))};
    Reference::Calls own = reference.bind({{"N", 4}}, {inputs}),
                     right = reference.bind_oracle({{"N", 4}}, {inputs});
    own.run(0, 1);
    right.run(0, 1);
    bool decidable = false;
    const std::vector<double> bounds = own.default_bounds(right, &decidable);
    EXPECT_TRUE(decidable);
    EXPECT_EQ(bounds[0], default_bound(own.outputs(0)[0], right.outputs(0)[0]));
    EXPECT_EQ(bounds[1], 0);
  }
}

TEST_F(ReferenceTest, ANearTieIsNotDecidable) {
  const Reference reference(make_task("def forward(x):\n  return (x + 1).argmax(0)\n",
                                      {tensor("x", Dtype::kFloat32, {"N"})},
                                      {tensor("out", Dtype::kInt64, {})}));
  std::vector<float> x = {0, 1e-9f};
  const std::vector<std::span<std::byte>> inputs{std::as_writable_bytes(std::span(x))};
  Reference::Calls own = reference.bind({{"N", 2}}, {inputs}),
                   right = reference.bind_oracle({{"N", 2}}, {inputs});
  own.run(0, 1);
  right.run(0, 1);
  bool decidable = true;
  own.default_bounds(right, &decidable);
  EXPECT_FALSE(decidable);
}

TEST_F(ReferenceTest, ChecksBeginWithTheSmallestShape) {
  task::Task task = exponential();
  task::ValueSpec ones, normal;
  ones.kind = "ones";
  normal.arguments = {task::Expression::parse("0"), task::Expression::parse("1 / N")};
  task::ValueSpec mix;
  mix.kind = "mix";
  mix.arguments = {task::Expression::parse("0.5")};
  mix.parts = {ones, normal};
  task.distributions.push_back({{"x", mix}});
  const std::vector<CheckCase> cases = check_cases(task, 2);
  ASSERT_EQ(cases.size(), 9u);
  EXPECT_EQ(describe(cases[0], task), "hidden shape N=1");
  EXPECT_EQ(describe(cases[1], task), "hidden shape N=1, seed 1");
  EXPECT_EQ(describe(cases[2], task),
            "hidden shape N=1, distribution 1 (x: mix(0.5, ones, normal(0, 1 / N)))");
  EXPECT_EQ(describe(cases[8], task), "shape N=64, distribution 1 (x: mix(0.5, ones, normal(0, 1 / N)))");
}

TEST_F(ReferenceTest, TheOracleRepeatsItselfAndBoundsAreAboveTheReferencesError) {
  task::Task task = exponential();
  task.scalars = {{"scale", true, 0.1}};
  const Reference reference(task);
  const ValueSource source;
  Oracle kept(task, reference, source, 5), thrown_away(task, reference, source, 5, 0);
  const CheckCase check{{{"N", 64}}, false, -1, 1};
  const auto expected = kept.expected(check);
  EXPECT_EQ(kept.expected(check), expected);
  EXPECT_NE(thrown_away.expected(check), thrown_away.expected(check));
  EXPECT_EQ(thrown_away.expected(check)->outputs[0].reals, expected->outputs[0].reals);
  EXPECT_TRUE(expected->decidable);
  EXPECT_GT(expected->bounds[0], 0);
  EXPECT_EQ(kept.bounds_at({{"N", 64}}), expected->bounds);
  EXPECT_EQ(kept.bounds_at({{"N", 5}}), std::vector<double>{0.0});
  task.tolerance = 1e-3;  // needs no check that was asked for
  EXPECT_EQ(Oracle(task, reference, source, 5).bounds_at({{"N", 5}}), std::vector<double>{1e-3});
  std::vector<float> x(64), again(64);
  kept.fill(check, {std::as_writable_bytes(std::span(x))});
  thrown_away.fill(check, {std::as_writable_bytes(std::span(again))});
  EXPECT_EQ(x, again);
  const OutputValues own = reference.run({{"N", 64}}, bytes(x))[0];
  EXPECT_TRUE(compare(own, expected->outputs[0], expected->bounds[0] / 9.99).agrees);
}

// What cannot be made is asked again the next time, and no bounds stand in for it.
TEST_F(ReferenceTest, AnOracleThatFailsKeepsNothing) {
  class Failing : public Oracle {
   public:
    using Oracle::Oracle;
    int asked_times = 0;

   private:
    Asked ask(const CheckCase& check) override {
      if (++asked_times == 1) throw Error("no memory");
      return Oracle::ask(check);
    }
  };
  const task::Task task =
      make_task("def forward(x):\n  return x.exp()\n", {tensor("x", Dtype::kFloat32, {"N"})},
                {tensor("out", Dtype::kFloat32, {"N"})});
  const Reference reference(task);
  const ValueSource source;
  Failing oracle(task, reference, source, 1, 0);
  const CheckCase check{{{"N", 5}}, false, -1, 0};
  EXPECT_THROW(oracle.asked(check), Error);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(oracle.asked(check).bounds.size(), 1u);
  EXPECT_EQ(oracle.asked_times, 2) << "what was found is kept, also where the answers are not";
  EXPECT_EQ(oracle.bounds_at(check.dims), oracle.asked(check).bounds);
}

TEST_F(ReferenceTest, ATaskMayGiveItsTolerance) {
  task::Task task = exponential();
  task.scalars = {{"scale", true, 1.0}};
  task.tolerance = 0.25;
  const Reference reference(task);
  const ValueSource source;
  EXPECT_EQ(Oracle(task, reference, source, 5).expected({{{"N", 5}}, true, -1, 0})->bounds[0], 0.25);
}

TEST_F(ReferenceTest, AReferenceThatWorksInPlaceIsStillRight) {
  const task::Task task =
      make_task("def forward(x):\n  return x.add_(1.0)\n", {tensor("x", Dtype::kFloat32, {"N"})},
                {tensor("out", Dtype::kFloat32, {"N"})});
  const Reference reference(task);
  const ValueSource source;
  Oracle oracle(task, reference, source, 1);
  const CheckCase check{{{"N", 5}}, true, -1, 0};
  std::vector<float> x(5);
  oracle.fill(check, {std::as_writable_bytes(std::span(x))});
  const auto expected = oracle.expected(check);
  for (std::size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(expected->outputs[0].reals[i], static_cast<double>(x[i]) + 1.0);
}

// A module may make float32 tensors of its own, which an operator does not take beside float64 ones.
TEST_F(ReferenceTest, OneThatCannotRunInFloat64IsItsOwnAnswer) {
  const task::Task task =
      make_task("def forward(x):\n  return torch.mv(torch.ones([x.size(0), x.size(0)], dtype=6), x)\n",
                {tensor("x", Dtype::kFloat32, {"N"})}, {tensor("out", Dtype::kFloat32, {"N"})});
  const Reference reference(task);
  EXPECT_THROW(reference.run_oracle({{"N", 3}}, bytes(std::vector<float>{1, 2, 3})), NoFloat64);
  const ValueSource source;
  Oracle oracle(task, reference, source, 1);
  const CheckCase check{{{"N", 64}}, true, -1, 0};
  const Asked asked = oracle.asked(check);
  EXPECT_TRUE(asked.decidable);
  EXPECT_NE(oracle.without_float64().find("expected scalar type"), std::string::npos)
      << oracle.without_float64();
  // Some roundings of a sum of 64 values of that size, and not one that tells nothing.
  EXPECT_GT(asked.bounds[0], 1e-6);
  EXPECT_LT(asked.bounds[0], 1e-3);
  std::vector<float> drawn(64), right(64);
  oracle.fill(check, {std::as_writable_bytes(std::span(drawn))});
  const auto sum = static_cast<float>(std::accumulate(drawn.begin(), drawn.end(), 0.0));
  right.assign(64, sum);
  const auto agrees = [&] {
    return oracle.compare(check, {{std::as_bytes(std::span(right))}})[0].with_right[0].agrees;
  };
  EXPECT_TRUE(agrees());
  right[7] += 0.01f;
  EXPECT_FALSE(agrees());
}

// Inputs one rounding away: each by its own last place, up or down; what has none stays.
TEST_F(ReferenceTest, InputsAreMovedByOneRounding) {
  const Reference reference(make_task("def forward(x):\n  return x\n", {tensor("x", Dtype::kFloat32, {"N"})},
                                      {tensor("out", Dtype::kFloat32, {"N"})}));
  std::vector<float> x(1000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1 + static_cast<float>(i) / 1000;
  const task::Dims dims = {{"N", 1000}};
  EXPECT_EQ(reference.run_near(dims, bytes(x))[0].reals, reference.run(dims, bytes(x))[0].reals)
      << "float64 is there";
  reference.do_without_float64("a test");
  const std::vector<double> near = reference.run_near(dims, bytes(x))[0].reals;
  int up = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double moved = near[i] / static_cast<double>(x[i]) - 1;
    EXPECT_NEAR(std::fabs(moved), 0x1p-23, 0x1p-24) << i;
    up += moved > 0;
  }
  EXPECT_GT(up, 300);
  EXPECT_LT(up, 700);
  const std::vector<float> none = {0.f, INFINITY, -INFINITY};
  EXPECT_EQ(reference.run_near({{"N", 3}}, bytes(none))[0].reals,
            (std::vector<double>{0, INFINITY, -INFINITY}));
}

TEST_F(ReferenceTest, WhereTheReferenceItselfIsWrongNothingIsDecided) {
  // In float32 the square overflows; in float64 it does not.
  task::Task task = make_task("def forward(x):\n  return (x * 1e30) * (x * 1e30) * 1e-60\n",
                              {tensor("x", Dtype::kFloat32, {"N"})}, {tensor("out", Dtype::kFloat32, {"N"})});
  const Reference reference(task);
  const ValueSource source;
  const auto expected = Oracle(task, reference, source, 1).expected({{{"N", 5}}, true, -1, 0});
  EXPECT_FALSE(expected->decidable);
  EXPECT_NE(expected->undecidable_because.find("misses its float64 answer"), std::string::npos);
}

}  // namespace
}  // namespace warpsmith::measure
