// Inputs that are not contiguous, and that lie off every boundary, on the CPU twin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "task_folder.h"
#include "timing/roofline.h"
#include "warpsmith/measure/oracle.h"
#include "warpsmith/measure/task_check.h"

namespace warpsmith::measure {
namespace {

using ::testing::HasSubstr;

// Every second row of a matrix, and a vector that begins one element behind a boundary.
constexpr const char* kRows = R"yaml(schema: warpsmith.task/1
title: Rows with gaps between them, and a bias
level: 1
split: extra
ops: [bias]
dims: [M, N]
inputs:
  x: {shape: [M, N], strides: [2 * N, 1]}
  b: {role: parameter, shape: [N], offset: 1}
outputs:
  out: {shape: [M, N]}
reference: |
  def forward(x: Tensor, b: Tensor) -> Tensor:
    return x * 2.0 + b
timing:
  - {M: 64, N: 128}
hidden:
  - {M: 3, N: 33}
  - {M: 1, N: 1}
)yaml";

class Layout : public testing::Test {
 protected:
  Measurement measure(const std::string& plan, const std::string& body) {
    const std::string source = "// plan: " + plan +
                               "\nextern \"C\" __global__ void k(const float* x, const float* b, float* out, "
                               "int M, int N, int S) {\n"
                               "  int i = blockIdx.x * 128 + threadIdx.x;\n  if (i >= M * N) return;\n" +
                               body + "\n}\n";
    const Candidate made = make_plan_candidate("rows", source, {});
    return measurer_.measure(folder_.task(), made, folder_.compile(made)).measurement;
  }
  const TaskFolder folder_{"rows", kRows};
  Measurer measurer_{quick_settings()};
};

const std::string kLaunch = "launch k<<<cdiv(M * N, 128), 128>>>(x, b, out, M, N, x.s0)";

TEST_F(Layout, StridesThatThePlanHandsOverAreRight) {
  const Measurement m = measure(kLaunch, "  out[i] = x[i / N * S + i % N] * 2.f + b[i % N];");
  EXPECT_EQ(m.verdict, Verdict::kOk) << m.detail;
  EXPECT_GT(m.rounds, 0);
}

TEST_F(Layout, WhoTakesItForContiguousIsWrong) {
  const Measurement m = measure(kLaunch, "  out[i] = x[i] * 2.f + b[i % N];");
  EXPECT_EQ(m.verdict, Verdict::kWrongOutput) << m.detail;
}

TEST_F(Layout, ThePlanSeesWhereItLies) {
  const Measurement m = measure(
      "if aligned(b, 8) || !aligned(b, 4) || (contiguous(x) && M > 1)\n// plan: launch k<<<1, 1>>>(x, b, "
      "out, 0, N, x.s0)\n// plan: else\n// plan: " +
          kLaunch + "\n// plan: end",
      "  out[i] = x[i / N * S + i % N] * 2.f + b[i % N];");
  EXPECT_EQ(m.verdict, Verdict::kOk) << m.detail;
}

// The address is what the plan is told: the twin's children see it too.
TEST_F(Layout, TheAddressIsOffItsBoundary) {
  const Measurement m =
      measure(kLaunch,
              "  if ((unsigned long long)b % 256 != 4 || (unsigned long long)x % 256 != 0) return;\n"
              "  out[i] = x[i / N * S + i % N] * 2.f + b[i % N];");
  EXPECT_EQ(m.verdict, Verdict::kOk) << m.detail;
}

TEST_F(Layout, MovingAsAWholeWantsNoGaps) {
  const Measurement m =
      measure("copy out <- x\n// plan: " + kLaunch, "  out[i] = x[i / N * S + i % N] * 2.f + b[i % N];");
  EXPECT_EQ(m.verdict, Verdict::kLaunchError);
  EXPECT_THAT(m.detail, HasSubstr("copy: `x` is not contiguous"));
}

TEST_F(Layout, WritingToAGapIsWritingToTheInput) {
  const Measurement m = measure(kLaunch,
                                "  out[i] = x[i / N * S + i % N] * 2.f + b[i % N];\n"
                                "  if (M > 1 && i == 0) const_cast<float*>(x)[N] = 1.f;");
  EXPECT_EQ(m.verdict, Verdict::kInputModified) << m.detail;
}

TEST_F(Layout, GapsNeedNotBeRead) {
  const task::Task& task = folder_.task();
  const task::Dims dims = {{"M", 4}, {"N", 8}};
  EXPECT_EQ(tensor_bytes(task.inputs[0], dims), (3 * 16 + 8) * 4u);
  EXPECT_EQ(compulsory_bytes(task, dims), (32 + 8 + 32) * 4.0);
}

TEST_F(Layout, TheTaskItselfIsFine) {
  configure_torch(1);
  const TaskFindings found = check_task(folder_.task(), 2, 1);
  EXPECT_FALSE(found.degenerate) << found.why();
}

}  // namespace
}  // namespace warpsmith::measure
