// Answers that are made some samples at a time.
#include "answers/samples.h"

#include <gtest/gtest.h>

#include <array>

#include "answers/host_inputs.h"
#include "plain_task.h"
#include "warpsmith/measure/compare.h"

namespace warpsmith::measure {
namespace {

using task::Dtype;

class SamplesTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { configure_torch(1); }
};

task::Task matrix_task(const std::string& body, std::vector<task::TensorSpec> more = {}) {
  std::string parameters = "x";
  for (const task::TensorSpec& input : more) parameters += ", " + input.name;
  more.insert(more.begin(), tensor("x", Dtype::kFloat32, {"N", "7"}));
  return make_task("def forward(" + parameters + "):\n  return " + body + "\n", std::move(more),
                   {tensor("out", Dtype::kFloat32, {"N", "7"})});
}

bool each_sample(const task::Task& task) {
  const Reference reference(task);
  const task::Dims dims = {{"N", 5}};
  HostInputs inputs(task, dims);
  fill_inputs(ValueSource(), reference, dims, -1, 1, 0, inputs.spans());
  return answers_each_sample(reference, dims, "N", inputs.spans());
}

TEST_F(SamplesTest, TheBatchIsWhatEveryOutputLeadsWith) {
  EXPECT_EQ(batch_dim(matrix_task("x")), "N");
  EXPECT_EQ(batch_dim(matrix_task("x", {tensor("w", Dtype::kFloat32, {"7", "7"})})), "N");
  EXPECT_EQ(batch_dim(matrix_task("x", {tensor("w", Dtype::kFloat32, {"7", "N"})})), "");
  EXPECT_EQ(batch_dim(matrix_task("x", {tensor("w", Dtype::kFloat32, {"2 * N", "7"})})), "");
  EXPECT_EQ(batch_dim(matrix_task("x", {tensor("w", Dtype::kInt64, {"N"})})), "")
      << "the reference may write to it";
  task::Task strided = matrix_task("x");
  strided.inputs[0].strides = {task::Expression::parse("1"), task::Expression::parse("N")};
  EXPECT_EQ(batch_dim(strided), "");
  task::Task scalar = matrix_task("x.sum()");
  scalar.outputs = {tensor("out", Dtype::kFloat32, {})};
  EXPECT_EQ(batch_dim(scalar), "");
  task::Task constant = matrix_task("x");
  constant.outputs[0].shape[0] = task::Expression::parse("64");
  EXPECT_EQ(batch_dim(constant), "");
}

TEST_F(SamplesTest, WhetherEachIsAnsweredForItself) {
  EXPECT_TRUE(each_sample(matrix_task("torch.relu(x)")));
  EXPECT_TRUE(each_sample(matrix_task("x.softmax(1)")));
  EXPECT_TRUE(each_sample(matrix_task("x.mul_(2).cumsum(1)")));
  EXPECT_TRUE(each_sample(matrix_task("x.matmul(w)", {tensor("w", Dtype::kFloat32, {"7", "7"})})));
  EXPECT_FALSE(each_sample(matrix_task("x.softmax(0)")));
  EXPECT_FALSE(each_sample(matrix_task("x - x.mean()")));
  EXPECT_FALSE(each_sample(matrix_task("x.flip(0)")));
  // Refuses a batch of one.
  EXPECT_FALSE(
      each_sample(matrix_task("torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)")));
}

TEST_F(SamplesTest, ItIsAskedWithTwoSamplesOrMore) {
  EXPECT_EQ(few_samples(matrix_task("x"), "N", 1 << 20), (task::Dims{{"N", 5}}));
  EXPECT_EQ(few_samples(matrix_task("x"), "N", 279), std::nullopt) << "five samples take 280 bytes";
  task::Task large_alone = matrix_task("x");
  large_alone.hidden = {{{"N", 1}}};
  EXPECT_EQ(few_samples(large_alone, "N", 1 << 20), (task::Dims{{"N", 64}}));
}

TEST_F(SamplesTest, APartOfACall) {
  const task::Task task = matrix_task("x", {tensor("w", Dtype::kFloat32, {"7", "7"})});
  std::array<std::byte, 5 * 28> x{};
  std::array<std::byte, 196> w{};
  const auto part = part_of<std::byte>(task.inputs, {{"N", 5}}, "N",
                                       {std::span<std::byte>(x), std::span<std::byte>(w)}, 2, 3);
  EXPECT_EQ(part[0].data(), x.data() + 56);
  EXPECT_EQ(part[0].size(), 84u);
  EXPECT_EQ(part[1].data(), w.data());
  EXPECT_EQ(part[1].size(), w.size());
}

TEST_F(SamplesTest, TheWorstElementOfAllParts) {
  const OutputValues right{Dtype::kFloat32, {4}, {1, 2, 3, 4}, {}, false};
  for (const std::vector<float>& got : {std::vector<float>{1, 2, 3, 4},
                                        {1, 2.5f, 3, 4},
                                        {1, 2.5f, 3, 9},
                                        {7, 2, 3, NAN},
                                        {NAN, 2, 3, INFINITY}}) {
    const Comparison whole = compare(std::as_bytes(std::span(got)), right, 0.25);
    Comparison parts;
    for (std::size_t first : {0u, 2u}) {
      const OutputValues part{Dtype::kFloat32, {2}, {right.reals[first], right.reals[first + 1]}, {}, false};
      add_part(parts, compare(std::as_bytes(std::span(got).subspan(first, 2)), part, 0.25),
               static_cast<std::int64_t>(first));
    }
    EXPECT_EQ(parts.agrees, whole.agrees);
    EXPECT_EQ(parts.wrong, whole.wrong);
    EXPECT_EQ(parts.worst, whole.worst);
    EXPECT_EQ(parts.max_error, whole.max_error);
  }
}

TEST_F(SamplesTest, OutputsThatLieInInputsCanBeKept) {
  const Reference reference(matrix_task("x.mul_(2)"));
  std::vector<float> x(21, 1);
  Reference::Calls calls = reference.bind({{"N", 3}}, {{std::as_writable_bytes(std::span(x))}});
  calls.run(0, 1);
  calls.keep_outputs();
  x.assign(21, 5);
  x[20] = 6;
  EXPECT_EQ(calls.outputs(0)[0].reals, std::vector<double>(21, 2));
  calls.run(0, 1);
  EXPECT_EQ(calls.part({{"N", 1}}, 2).outputs(0)[0].reals.back(), 12);
  EXPECT_EQ(calls.part({{"N", 3}}, 0).outputs(0)[0].reals.size(), 21u);
}

}  // namespace
}  // namespace warpsmith::measure
