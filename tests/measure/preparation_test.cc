// What a task's `prepare` makes of the draws of its inputs, on the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plain_task.h"
#include "warpsmith/base/error.h"
#include "warpsmith/measure/oracle.h"
#include "warpsmith/measure/reference.h"
#include "warpsmith/measure/task_check.h"

namespace warpsmith::measure {
namespace {

using task::Dtype;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PreparationTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { configure_torch(1); }

  // out = A @ B, N by N.
  static task::Task product(const std::string& prepare, const std::vector<std::size_t>& prepared) {
    task::Task task =
        make_task("def forward(A, B):\n  return A.matmul(B)\n",
                  {tensor("A", Dtype::kFloat32, {"N", "N"}), tensor("B", Dtype::kFloat32, {"N", "N"})},
                  {tensor("out", Dtype::kFloat32, {"N", "N"})});
    task.prepare = "def prepare" + prepare;
    task.prepared = prepared;
    return task;
  }
  static std::vector<std::vector<float>> filled(const task::Task& task, std::int64_t n, std::uint64_t use = 0,
                                                int distribution = -1) {
    const Reference reference(task);
    const ValueSource source;
    std::vector<std::vector<float>> inputs(task.inputs.size(),
                                           std::vector<float>(static_cast<std::size_t>(n * n)));
    std::vector<std::span<std::byte>> spans;
    for (std::vector<float>& input : inputs) spans.push_back(std::as_writable_bytes(std::span(input)));
    fill_inputs(source, reference, {{"N", n}}, distribution, 7, use, spans);
    return inputs;
  }
  static std::string fails(const task::Task& task) {
    try {
      filled(task, 3);
    } catch (const InvalidInput& e) {
      return to_string(e.diagnostics().at(0));
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
};

TEST_F(PreparationTest, InputsAreWhatItMakesOfTheirDraws) {
  const task::Task plain = product("(A):\n  return A\n", {0});
  const task::Task task = product("(B, A):\n  return B.triu(), (A + A.t()) / 2\n", {1, 0});
  for (const std::int64_t n : {1, 4, 33}) {
    const auto draws = filled(plain, n), made = filled(task, n);
    EXPECT_EQ(made, filled(task, n)) << "the same again";
    EXPECT_NE(made, filled(task, n, 1)) << "and others in another call";
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        const auto at = static_cast<std::size_t>(i * n + j), across = static_cast<std::size_t>(j * n + i);
        ASSERT_EQ(made[0][at], (draws[0][at] + draws[0][across]) / 2);
        ASSERT_EQ(made[1][at], j >= i ? draws[1][at] : 0);
      }
  }
}

// Neither results that are views of arguments nor arguments that are written to change others.
TEST_F(PreparationTest, ItRunsOnCopies) {
  const auto draws = filled(product("(A):\n  return A\n", {0}), 5);
  const auto swapped = filled(product("(A, B):\n  return B, A\n", {0, 1}), 5);
  EXPECT_EQ(swapped[0], draws[1]);
  EXPECT_EQ(swapped[1], draws[0]);
  const auto both = filled(product("(A, B):\n  return A.mul_(2), A\n", {0, 1}), 5);
  EXPECT_EQ(both[0], both[1]);
  EXPECT_EQ(both[0][3], draws[0][3] * 2);
  EXPECT_EQ(filled(product("(A):\n  return A.t()\n", {0}), 5)[0][1], draws[0][5]);
}

TEST_F(PreparationTest, ADistributionReplacesTheDraws) {
  task::Task task = product("(A):\n  return A.tril() + 1.0\n", {0});
  task::ValueSpec zeros;
  zeros.kind = "zeros";
  task.distributions = {{{"A", zeros}}};
  EXPECT_THAT(filled(task, 2, 0, 0)[0], ElementsAre(1, 1, 1, 1));
}

TEST_F(PreparationTest, TellsWhatIsWrongWithIt) {
  EXPECT_THAT(fails(product("(A):\n  return A.no_such_operator()\n", {0})),
              HasSubstr("/nowhere/sample/task.yaml: prepare: "));
  EXPECT_THAT(fails(product("(A):\n  return A + torch.rand_like(A)\n", {0})),
              HasSubstr("prepare: it draws at random (rand_like)"));
  EXPECT_THAT(fails(product("(A, B):\n  return A, B\n", {0})),
              HasSubstr("prepare: `prepare` takes 2 arguments, the task has 1 inputs for it"));
  EXPECT_EQ(fails(product("(A):\n  return A, A\n", {0})),
            "task sample: prepare returns 2 tensors for 1 inputs");
  EXPECT_EQ(fails(product("(A):\n  return A[0]\n", {0})),
            "task sample: `A` of prepare has shape [3], the task says [3, 3]");
  EXPECT_EQ(fails(product("(A):\n  return A.double()\n", {0})),
            "task sample: `A` of prepare is Double, the task says float32");
  EXPECT_EQ(fails(product("(A):\n  return A.size(0)\n", {0})),
            "task sample: prepare does not return a tensor or a tuple of tensors");
  EXPECT_THAT(fails(product("(A):\n  return A.matmul(torch.ones([7, 7]))\n", {0})),
              HasSubstr("task sample: prepare fails: "));
}

// The answer is made for prepared inputs, and so is what a task is worth.
TEST_F(PreparationTest, OracleAndTaskCheckHaveIt) {
  task::Task task = make_task("def forward(x, i):\n  return x.index_select(0, i)\n",
                              {tensor("x", Dtype::kFloat32, {"N"}), tensor("i", Dtype::kInt64, {"N"})},
                              {tensor("out", Dtype::kFloat32, {"N"})});
  task.inputs[1].values.kind = "zeros";
  task.inputs[1].values.arguments.clear();
  task.prepare = "def prepare(x, i):\n  return x, torch.argsort(x)\n";
  task.prepared = {0, 1};
  const Reference reference(task);
  const ValueSource source;
  const std::vector<double> sorted =
      Oracle(task, reference, source, 5).expected({{{"N", 64}}, false, -1, 0})->outputs[0].reals;
  EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.end()));
  EXPECT_FALSE(check_task(task, 2, 1).degenerate);
  task.prepare = "def prepare(x):\n  return x * 0.0\n";
  task.prepared = {0};
  EXPECT_THAT(check_task(task, 2, 1).why(), HasSubstr("does not depend on input `x`"));
}

}  // namespace
}  // namespace warpsmith::measure
