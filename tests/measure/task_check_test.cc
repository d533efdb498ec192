// Tasks that a program without any work would pass, and those that it would not.
#include "warpsmith/measure/task_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "plain_task.h"
#include "torch_flags.h"
#include "warpsmith/base/error.h"

namespace warpsmith::measure {
namespace {

using task::Dtype;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

task::Task task_of(const std::string& body, const std::vector<task::TensorSpec>& inputs,
                   const std::vector<task::TensorSpec>& outputs) {
  std::string parameters;
  for (const task::TensorSpec& input : inputs) parameters += (parameters.empty() ? "" : ", ") + input.name;
  return make_task("def forward(" + parameters + "):\n  return " + body + "\n", inputs, outputs);
}

task::Task one_to_one(const std::string& body) {
  return task_of(body, {tensor("x", Dtype::kFloat32, {"N", "N"})},
                 {tensor("out", Dtype::kFloat32, {"N", "N"})});
}

class TaskCheckTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { configure_torch(1); }
  static TaskFindings check(const task::Task& task) { return check_task(task, 3, 1); }
};

TEST_F(TaskCheckTest, AnHonestTaskIsNone) {
  const TaskFindings found = check(one_to_one("torch.relu(x)"));
  EXPECT_FALSE(found.degenerate) << found.why();
  EXPECT_EQ(found.cases, 9);  // three shapes, three seeds
  EXPECT_THAT(found.cheap, IsEmpty());
  EXPECT_THAT(found.unread, IsEmpty());
  EXPECT_EQ(found.why(), "");
}

TEST_F(TaskCheckTest, Zeros) {
  const TaskFindings found = check(one_to_one("torch.clamp(x - 100.0, min=0.0)"));
  EXPECT_TRUE(found.degenerate);
  EXPECT_THAT(found.cheap, ElementsAre("`out`: zeros"));
  // Of a task where nothing counts the inputs are not needed either: that is said first.
  EXPECT_EQ(found.why(), "the answer does not depend on input `x`");
}

// A softmax over one element, as benchmarks have had it.
TEST_F(TaskCheckTest, AConstant) {
  task::Task task = task_of("torch.softmax(x, dim=1) * 3.0", {tensor("x", Dtype::kFloat32, {"N", "1"})},
                            {tensor("out", Dtype::kFloat32, {"N", "1"})});
  EXPECT_THAT(check(task).cheap, ElementsAre("`out`: one constant, 3"));
}

// Nearly zeros beside one large element, as long as there are many of them.
TEST_F(TaskCheckTest, ZerosAtTheTimedShapeAlone) {
  const TaskFindings found = check(one_to_one("torch.relu(x) * max(0, 100 - x.size(0))"));
  EXPECT_FALSE(found.degenerate);
  EXPECT_THAT(found.cheap, IsEmpty());
  EXPECT_THAT(found.cheap_when_timed, IsEmpty());
  task::Task large = one_to_one("torch.relu(x) * max(0, 100 - x.size(0))");
  large.timing = {{{"N", 128}}};
  EXPECT_FALSE(check(large).degenerate);
  EXPECT_THAT(check(large).cheap_when_timed, ElementsAre("`out`: zeros"));
}

TEST_F(TaskCheckTest, AConstantOfEachShape) {
  const TaskFindings found = check(one_to_one("torch.zeros_like(x) + x.size(0)"));
  EXPECT_TRUE(found.degenerate);
  EXPECT_THAT(found.cheap, ElementsAre("`out`: a constant for each shape"));
}

TEST_F(TaskCheckTest, AnInputAsItIs) {
  task::Task task = task_of("x + 0.0 * y.sum()",
                            {tensor("x", Dtype::kFloat32, {"N", "N"}), tensor("y", Dtype::kFloat32, {"N"})},
                            {tensor("out", Dtype::kFloat32, {"N", "N"})});
  const TaskFindings found = check(task);
  EXPECT_TRUE(found.degenerate);
  EXPECT_THAT(found.cheap, ElementsAre("`out`: input `x` as it is"));
  EXPECT_THAT(found.unread, ElementsAre("y"));
  EXPECT_FALSE(check(one_to_one("x * 1.001")).degenerate);
}

// As a bias before a norm is: a program may leave it out, and gains little.
TEST_F(TaskCheckTest, ASmallInputThatIsNotNeededIsANote) {
  const task::Task task =
      task_of("torch.relu(x) + 0.0 * y",
              {tensor("x", Dtype::kFloat32, {"N", "N"}), tensor("y", Dtype::kFloat32, {"1"})},
              {tensor("out", Dtype::kFloat32, {"N", "N"})});
  const TaskFindings found = check(task);
  EXPECT_FALSE(found.degenerate) << found.why();
  EXPECT_THAT(found.unread, ElementsAre("y"));
  EXPECT_NEAR(found.unread_share, 1.0 / 4097, 1e-9);
  EXPECT_EQ(found.unread_names(), "`y`");
}

// A module whose answer hangs on its parameters alone: its data may be few of the bytes.
TEST_F(TaskCheckTest, DataThatIsNotReadIsMuchHoweverSmall) {
  task::Task task = task_of("torch.relu(x) + 0.0 * y",
                            {tensor("x", Dtype::kFloat32, {"N", "N"}), tensor("y", Dtype::kFloat32, {"1"})},
                            {tensor("out", Dtype::kFloat32, {"N", "N"})});
  task.inputs[0].state_dict = "weight";
  const TaskFindings found = check(task);
  EXPECT_TRUE(found.degenerate);
  EXPECT_EQ(found.why(), "the answer does not depend on input `y`");
}

TEST_F(TaskCheckTest, AShareOfTheInputsIsTold) {
  const task::Task task =
      task_of("torch.relu(x) + 0.0 * y.sum()",
              {tensor("x", Dtype::kFloat32, {"N", "3"}), tensor("y", Dtype::kFloat32, {"N"})},
              {tensor("out", Dtype::kFloat32, {"N", "3"})});
  EXPECT_EQ(check(task).why(), "the answer does not depend on input `y` (25 % of the inputs' bytes)");
}

// With other values it is needed: a distribution says so.
TEST_F(TaskCheckTest, AnInputThatIsNeededInOneDistributionIsNeeded) {
  task::Task task = task_of("torch.minimum(x, y)",
                            {tensor("x", Dtype::kFloat32, {"N"}), tensor("y", Dtype::kFloat32, {"N"})},
                            {tensor("out", Dtype::kFloat32, {"N"})});
  task.inputs[1].values.kind = "uniform";
  task.inputs[1].values.arguments = {task::Expression::parse("100"), task::Expression::parse("101")};
  const TaskFindings alone = check(task);
  EXPECT_THAT(alone.unread, ElementsAre("y"));
  EXPECT_THAT(alone.cheap, ElementsAre("`out`: input `x` as it is"));
  task::ValueSpec low = task.inputs[1].values;
  low.arguments = {task::Expression::parse("0"), task::Expression::parse("1")};
  task.distributions = {{{"y", low}}};
  EXPECT_FALSE(check(task).degenerate) << check(task).why();
}

TEST_F(TaskCheckTest, OneOutputOfTwoIsANoteAndNoMore) {
  task::Task task = task_of("(torch.relu(x), torch.zeros_like(x))", {tensor("x", Dtype::kFloat32, {"N"})},
                            {tensor("out0", Dtype::kFloat32, {"N"}), tensor("out1", Dtype::kFloat32, {"N"})});
  const TaskFindings found = check(task);
  EXPECT_FALSE(found.degenerate);
  EXPECT_THAT(found.cheap, ElementsAre("`out1`: zeros"));
}

TEST_F(TaskCheckTest, IntegersAndSingleElements) {
  task::Task argmax =
      task_of("torch.argmax(x)", {tensor("x", Dtype::kFloat32, {"N"})}, {tensor("out", Dtype::kInt64, {})});
  EXPECT_FALSE(check(argmax).degenerate) << check(argmax).why();
  argmax.hidden = {};
  argmax.timing = {{{"N", 1}}};
  EXPECT_THAT(check(argmax).cheap, ElementsAre("`out`: zeros"));
}

TEST_F(TaskCheckTest, NothingThatCanBeDecided) {
  // In float32 it overflows, and infinity less infinity is NaN; in float64 it does not.
  const TaskFindings found = check(one_to_one("torch.exp(x * 0.0 + 100.0) - torch.exp(x * 0.0 + 100.0)"));
  EXPECT_TRUE(found.degenerate);
  EXPECT_EQ(found.undecidable.size(), 9u);
  EXPECT_THAT(found.why(), HasSubstr("no check can be decided: hidden shape N=1"));
}

TEST_F(TaskCheckTest, AReferenceThatFailsIsAnError) {
  EXPECT_THROW(check(one_to_one("torch.matmul(x, torch.ones([7, 7]))")), Error);
}

TEST_F(TaskCheckTest, RunsAtTheTasksMath) {
  task::Task task = one_to_one("torch.relu(x)");
  for (const char* math : {"torch_default", "strict", "torch_default"}) {
    task.math = math;
    check(task);
    EXPECT_EQ(is_strict(), task.math == "strict");
  }
}

// Every task that comes with Warpsmith.
TEST_F(TaskCheckTest, NoneOfOurTasksIsDegenerate) {
  Diagnostics mistakes;
  const std::vector<task::Task> tasks = task::load_tasks(WARPSMITH_DATASETS, mistakes);
  ASSERT_TRUE(mistakes.empty());
  ASSERT_GE(tasks.size(), 30u);
  for (const task::Task& task : tasks) {
    const TaskFindings found = check_task(task, 2, 1);
    EXPECT_FALSE(found.degenerate) << task.id << ": " << found.why();
    EXPECT_THAT(found.cheap, IsEmpty()) << task.id;
  }
}

}  // namespace
}  // namespace warpsmith::measure
