// What check_candidate() says of programs that fail at a hidden shape.
#include "warpsmith/measure/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "plain_task.h"

namespace warpsmith::measure {
namespace {

using task::Dims;
using task::Dtype;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// Doubles its input, but for what `fails` says of a shape.
class Doubling : public Program {
 public:
  explicit Doubling(std::function<Ran(std::int64_t)> fails) : fails_(std::move(fails)) {}
  Ran prepare(const Dims& dims, int sets) override {
    dims_ = dims;
    const auto count = static_cast<std::size_t>(dims.at("N"));
    x_.assign(static_cast<std::size_t>(sets), std::vector<float>(count));
    out_ = x_;
    return {};
  }
  const Dims& dims() const override { return dims_; }
  std::vector<std::span<std::byte>> inputs(int set) override {
    return {std::as_writable_bytes(std::span(x_.at(static_cast<std::size_t>(set))))};
  }
  std::vector<std::span<const std::byte>> outputs(int set) override {
    return {std::as_bytes(std::span(out_.at(static_cast<std::size_t>(set))))};
  }
  void poison(int) override {}
  Ran run(int sets) override {
    const Ran ran = fails_(dims_.at("N"));
    alive_ = ran.verdict != Verdict::kCrash && ran.verdict != Verdict::kSandboxViolation;
    const float factor = ran.verdict == Verdict::kWrongOutput ? 3 : 2;
    for (std::size_t set = 0; set < static_cast<std::size_t>(sets); ++set)
      for (std::size_t i = 0; i < x_[set].size(); ++i) out_[set][i] = x_[set][i] * factor;
    return ran.verdict == Verdict::kWrongOutput ? Ran{} : ran;
  }
  bool alive() const override { return alive_; }

 private:
  std::function<Ran(std::int64_t)> fails_;
  Dims dims_;
  std::vector<std::vector<float>> x_, out_;
  bool alive_ = true;
};

class CheckTest : public testing::Test {
 protected:
  CheckTest()
      : task_(make_task("def forward(x):\n  return x * 2\n", {tensor("x", Dtype::kFloat32, {"N"})},
                        {tensor("out", Dtype::kFloat32, {"N"})})),
        reference_(task_),
        oracle_(task_, reference_, source_, 1),
        cases_(check_cases(task_, 2)) {}
  CheckOutcome of(const std::function<Ran(std::int64_t)>& fails) {
    Doubling program(fails);
    return check_candidate(program, task_, oracle_, cases_);
  }
  static std::function<Ran(std::int64_t)> at(std::int64_t size, Verdict verdict) {
    return [=](std::int64_t n) { return Ran{n == size ? verdict : Verdict::kOk, "it fails", 0}; };
  }
  std::int64_t hidden() const { return task_.hidden.front().at("N"); }
  std::int64_t timed() const { return task_.timing.front().at("N"); }

  task::Task task_;
  Reference reference_;
  ValueSource source_;
  Oracle oracle_;
  std::vector<CheckCase> cases_;
};

TEST_F(CheckTest, OneThatIsRightEverywhere) {
  const CheckOutcome outcome = of([](std::int64_t) { return Ran{}; });
  EXPECT_EQ(outcome.verdict, Verdict::kOk) << outcome.detail;
  EXPECT_FALSE(outcome.only_hidden);
}

TEST_F(CheckTest, OneThatFailsAtAHiddenShapeAlone) {
  for (const Verdict verdict : {Verdict::kWrongOutput, Verdict::kLaunchError}) {
    const CheckOutcome outcome = of(at(hidden(), verdict));
    EXPECT_EQ(outcome.verdict, verdict);
    EXPECT_TRUE(outcome.only_hidden);
    EXPECT_FALSE(outcome.died_at_hidden);
    EXPECT_THAT(outcome.detail, HasSubstr("hidden shape"));
    EXPECT_THAT(outcome.detail, EndsWith(kRightAtTimingShapes));
  }
}

TEST_F(CheckTest, OneThatFailsWhereItIsTimed) {
  const CheckOutcome outcome = of(at(timed(), Verdict::kLaunchError));
  EXPECT_EQ(outcome.verdict, Verdict::kLaunchError);
  EXPECT_FALSE(outcome.only_hidden || outcome.died_at_hidden);
  const CheckOutcome everywhere = of([](std::int64_t) { return Ran{Verdict::kLaunchError, "it fails", 0}; });
  EXPECT_FALSE(everywhere.only_hidden);
  EXPECT_THAT(everywhere.detail, Not(HasSubstr("timing shapes")));
}

// Another process can say whether it is right where it is timed.
TEST_F(CheckTest, OneWhoseProcessDiesAtAHiddenShape) {
  const CheckOutcome outcome = of(at(hidden(), Verdict::kCrash));
  EXPECT_EQ(outcome.verdict, Verdict::kCrash);
  EXPECT_TRUE(outcome.died_at_hidden);
  EXPECT_FALSE(outcome.only_hidden);
  EXPECT_FALSE(of(at(timed(), Verdict::kCrash)).died_at_hidden);
  EXPECT_FALSE(of(at(hidden(), Verdict::kSandboxViolation)).died_at_hidden) << "that is no careless program";
  for (const CheckCase& check : cases_at_timing_shapes(cases_)) EXPECT_FALSE(check.hidden);
  EXPECT_EQ(cases_at_timing_shapes(cases_).size(), 2u);
}

}  // namespace
}  // namespace warpsmith::measure
