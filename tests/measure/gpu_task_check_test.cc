// What is found of tasks on a GPU at shapes that are too large for the host (is_large()). Skips where there
// is no GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "gpu/task_checker.h"
#include "plain_task.h"
#include "warpsmith/base/error.h"

namespace warpsmith::measure {
namespace {

using task::Dtype;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class GpuTaskCheck : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    Settings settings;
    settings.check_seeds = 2;
    settings.seed = 1;
    settings.unsandboxed = true;
    try {
      checker_ = new GpuTaskChecker(settings);
    } catch (const Error& e) {
      why_none_ = new std::string(e.what());
      return;
    }
    configure_torch(1);
  }
  static void TearDownTestSuite() {
    delete checker_;
    delete why_none_;
    checker_ = nullptr;
    why_none_ = nullptr;
  }
  void SetUp() override {
    if (checker_ == nullptr) GTEST_SKIP() << "no GPU to test on: " << *why_none_;
  }
  // 16 MiB an input when it is timed, and no smaller shape.
  static TaskFindings check(const std::string& body, const std::vector<std::string>& inputs) {
    std::string parameters;
    std::vector<task::TensorSpec> specs;
    for (const std::string& input : inputs) {
      parameters += (parameters.empty() ? "" : ", ") + input;
      specs.push_back(tensor(input, Dtype::kFloat32, {"N", "N"}));
    }
    task::Task task = make_task("def forward(" + parameters + "):\n  " + body + "\n", specs,
                                {tensor("out", Dtype::kFloat32, {"N", "N"})});
    task.timing = {{{"N", 2048}}};
    task.hidden = {};
    return checker_->check(task);
  }

  static GpuTaskChecker* checker_;
  static std::string* why_none_;
};

GpuTaskChecker* GpuTaskCheck::checker_ = nullptr;
std::string* GpuTaskCheck::why_none_ = nullptr;

TEST_F(GpuTaskCheck, AnHonestTaskIsNone) {
  const TaskFindings found = check("return torch.matmul(x, y)", {"x", "y"});
  EXPECT_FALSE(found.degenerate) << found.why();
  EXPECT_EQ(found.cases, 1);
  EXPECT_THAT(found.cheap, IsEmpty());
  EXPECT_THAT(found.unread, IsEmpty());
}

TEST_F(GpuTaskCheck, AReferenceThatWorksInPlaceIsNoneEither) {
  const TaskFindings found = check("return x.mul_(2).add_(y)", {"x", "y"});
  EXPECT_FALSE(found.degenerate) << found.why();
}

TEST_F(GpuTaskCheck, AConstant) {
  EXPECT_THAT(check("return torch.clamp(x - 100.0, min=0.0)", {"x"}).cheap, ElementsAre("`out`: zeros"));
  EXPECT_THAT(check("return x * 0.0 + 3.0", {"x"}).cheap, ElementsAre("`out`: one constant, 3"));
}

TEST_F(GpuTaskCheck, AnInputAsItIs) {
  const TaskFindings found = check("return x + 0.0 * y.sum()", {"x", "y"});
  EXPECT_TRUE(found.degenerate);
  EXPECT_THAT(found.cheap, ElementsAre("`out`: input `x` as it is"));
  EXPECT_THAT(found.unread, ElementsAre("y"));
}

// 2 GiB of inputs and outputs: answered some samples at a time, and as a whole where samples hang together.
TEST_F(GpuTaskCheck, SamplesOfALargeBatch) {
  const auto check = [](const std::string& body) {
    task::Task task =
        make_task("def forward(x):\n  return " + body + "\n", {tensor("x", Dtype::kFloat32, {"N", "65536"})},
                  {tensor("out", Dtype::kFloat32, {"N", "65536"})});
    task.timing = {{{"N", 4099}}};
    task.hidden = {{{"N", 3}}};
    return checker_->check(task);
  };
  for (const char* body : {"x.softmax(1)", "x.softmax(0)", "x - x.mean()", "x.relu_()"}) {
    const TaskFindings found = check(body);
    EXPECT_FALSE(found.degenerate) << body << ": " << found.why();
    EXPECT_THAT(found.undecidable, IsEmpty()) << body;
  }
  EXPECT_THAT(check("x + 0.0 * x.sum(1, keepdim=True)").cheap, ElementsAre("`out`: input `x` as it is"));
  EXPECT_THAT(check("x * 0.0 + x.size(1)").cheap, ElementsAre("`out`: one constant, 65536"));
}

TEST_F(GpuTaskCheck, WhatWantsAnInfinityIsNoConstant) {
  EXPECT_THAT(check("return x / 0.0", {"x"}).cheap, IsEmpty());
}

}  // namespace
}  // namespace warpsmith::measure
