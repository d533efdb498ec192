#include "warpsmith/measure/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plain_task.h"
#include "torch_flags.h"
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

TEST_F(ReferenceTest, SurelyWithinMeansFiniteAndWithinTheBound) {
  const Reference reference(three_outputs());
  std::vector<float> x = {0, 1, 2};
  Reference::Calls calls = reference.bind({{"N", 3}}, {{std::as_writable_bytes(std::span(x))}});
  calls.run(0, 1);
  const auto surely = [&](std::vector<float> reals, std::vector<std::int64_t> integers,
                          std::vector<std::uint8_t> bools, double bound = 1e-6) {
    return calls.surely_within(0, {bytes(reals)[0], bytes(integers)[0], bytes(bools)[0]}, {bound, 0, 0});
  };
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(surely({0, 2, 4}, {0, 1, 2}, {0, 1, 1}));
  EXPECT_TRUE(surely({0, 2, 4.125f}, {0, 1, 2}, {0, 1, 1}, 0.125));
  EXPECT_FALSE(surely({0, 2, 4.125f}, {0, 1, 2}, {0, 1, 1}, 0.124));
  EXPECT_FALSE(surely({0, 2, nan}, {0, 1, 2}, {0, 1, 1}));
  EXPECT_FALSE(surely({0, 2, inf}, {0, 1, 2}, {0, 1, 1}, 1e300));
  EXPECT_FALSE(surely({0, 2, 4}, {0, 1, 3}, {0, 1, 1}));
  EXPECT_FALSE(surely({0, 2, 4}, {0, 1, 2}, {0, 1, 2}));  // a bool of byte 2
  EXPECT_FALSE(surely({0, 2}, {0, 1, 2}, {0, 1, 1}));
  EXPECT_FALSE(calls.surely_within(0, {}, {}));
  // Where NaN or an infinity is right somebody has to look.
  x = {0, 1, nan};
  calls.run(0, 1);
  EXPECT_FALSE(surely({0, 2, nan}, {0, 1, 2}, {0, 1, 1}));
}

TEST_F(ReferenceTest, SurelyWithinGoesByIndicesNotByMemory) {
  const Reference reference(make_task("def forward(x):\n  return x.t()\n",
                                      {tensor("x", Dtype::kFloat32, {"M", "N"})},
                                      {tensor("out", Dtype::kFloat32, {"N", "M"})}));
  std::vector<float> x = {0, 1, 2, 3, 4, 5};
  Reference::Calls calls = reference.bind({{"M", 2}, {"N", 3}}, {{std::as_writable_bytes(std::span(x))}});
  calls.run(0, 1);
  EXPECT_TRUE(calls.surely_within(0, bytes(std::vector<float>{0, 3, 1, 4, 2, 5}), {1e-6}));
  EXPECT_FALSE(calls.surely_within(0, bytes(x), {1e-6}));
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
  std::vector<float> x(64), again(64);
  kept.fill(check, {std::as_writable_bytes(std::span(x))});
  thrown_away.fill(check, {std::as_writable_bytes(std::span(again))});
  EXPECT_EQ(x, again);
  const OutputValues own = reference.run({{"N", 64}}, bytes(x))[0];
  EXPECT_TRUE(compare(own, expected->outputs[0], expected->bounds[0] / 9.99).agrees);
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
