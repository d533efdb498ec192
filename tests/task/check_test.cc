#include "warpsmith/task/check.h"

#include <gtest/gtest.h>

#include "warpsmith/base/files.h"

namespace warpsmith::task {
namespace {

TEST(Form, TakesOutNamesConstantsAndComments) {
  EXPECT_EQ(form("// plan: launch k<<<1, 2>>>(x)\nint a = b1 + 2.5e-3f; /* c */ if (a) f(\"x\\\"y\", 'c');"),
            "int I = I + N ; if ( I ) I ( S , S ) ;");
  EXPECT_EQ(form("float x=1.f;"), form("float  why = 0x10 ; // other"));
  EXPECT_NE(form("float x = 1.f;"), form("double x = 1.f;"));
  EXPECT_NE(form("a + b"), form("a - b"));
  EXPECT_EQ(form("/* open"), "");
  EXPECT_EQ(form("\"open"), "S");
}

class CheckDataset : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) /
            ("check_dataset_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(root_);
    make_folders(root_ / "t");
    write_file_atomic(root_ / "t/task.yaml", R"yaml(schema: warpsmith.task/1
title: Double
level: 1
split: train
ops: [scale]
dims: [N]
inputs:
  x: {shape: [N]}
outputs:
  out: {shape: [N]}
reference: |
  def forward(x: Tensor) -> Tensor:
    return x * 2
timing: {cpu: [{N: 1024}], gpu: [{N: 33554432}]}
hidden: [{N: 1}]
flops: N
bytes: 8 * N
)yaml");
    const char* const kBodies[] = {"a;", "a + b;", "a * b;", "a / b;", "-a;", "!a;"};
    for (int i = 0; i < 6; ++i) add("ok", "c" + std::to_string(i), std::string(kLaunch) + kBodies[i]);
    add("compile_error", "e", "no plan at all");
    add("wrong_output", "w", std::string(kLaunch) + "1");
    add("wrong_hidden", "h", std::string(kLaunch) + "2");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void add(const std::string& expected, const std::string& name, const std::string& text) {
    make_folders(root_ / "t/candidates" / expected);
    write_file_atomic(root_ / "t/candidates" / expected / (name + ".cu"), text);
  }
  void remove(const std::string& path) { std::filesystem::remove(root_ / "t" / path); }
  // All mistakes, with paths below the folder.
  std::string check() {
    Diagnostics diagnostics;
    count_ = check_dataset(root_, diagnostics);
    std::string lines;
    for (const Diagnostic& diagnostic : diagnostics) lines += to_string(diagnostic) + "\n";
    const std::string prefix = (root_ / "").string();
    for (std::size_t at = 0; (at = lines.find(prefix)) != std::string::npos;) lines.erase(at, prefix.size());
    return lines;
  }

  static constexpr const char* kLaunch = "// plan: launch k<<<N, 32>>>(x, out)\n";
  std::filesystem::path root_;
  DatasetCount count_;
};

TEST_F(CheckDataset, AGoodOneHasNoMistake) {
  EXPECT_EQ(check(), "");
  EXPECT_EQ(count_.tasks, 1);
  EXPECT_EQ(count_.candidates, 9);
}

TEST_F(CheckDataset, GpusNeedLargeShapes) {
  const auto with_timing = [&](const std::string& timing) {
    std::string text = read_file(root_ / "t/task.yaml");
    const std::size_t begin = text.find("timing:"), end = text.find("hidden:");
    write_file_atomic(root_ / "t/task.yaml", text.replace(begin, end - begin, timing));
    return check();
  };
  EXPECT_EQ(with_timing("timing: [{N: 1024}]\n"),
            "t/task.yaml: `timing` has no shapes for GPUs (timing: {cpu: [...], gpu: [...]}, or `small: why` "
            "where the task is to be small)\n");
  EXPECT_EQ(with_timing("small: as it is called\ntiming: [{N: 1024}]\n"), "");
  std::string text = read_file(root_ / "t/task.yaml");
  write_file_atomic(root_ / "t/task.yaml", text.erase(text.find("small:"), 23));
  EXPECT_EQ(with_timing("timing: {cpu: [{N: 1024}], gpu: [{N: 12582912}]}\n"),
            "t/task.yaml: at N=12582912 memory is the bound, and 96.0 MiB fit into a GPU's L2 of 96.0 MiB "
            "(take a larger first shape for GPUs, or say `small: why`)\n");
  EXPECT_EQ(with_timing("timing: {cpu: [{N: 1024}], gpu: [{N: 12582913}]}\n"), "");
  text = read_file(root_ / "t/task.yaml");
  write_file_atomic(root_ / "t/task.yaml", text.replace(text.find("flops: N"), 8, "flops: 128 * N"));
  EXPECT_EQ(with_timing("timing: {cpu: [{N: 1024}], gpu: [{N: 4096}]}\n"), "") << "arithmetic is the bound";
}

// A plan that does not fit at a GPU's shape is found without a GPU.
TEST_F(CheckDataset, PlansAreEvaluatedAtTheShapesOfGpus) {
  add("ok", "c0", "// plan: launch k<<<dim3(1, N / 512), 32>>>(x, out)\na;");
  EXPECT_EQ(check().substr(0, 60), "t/candidates/ok/c0.cu:1:1: at N=33554432: grid.y is 65536, n");
}

TEST_F(CheckDataset, TooFewOfAKind) {
  remove("candidates/ok/c3.cu");
  remove("candidates/wrong_hidden/h.cu");
  EXPECT_EQ(check(),
            "t/candidates/ok: 5 candidates where at least 6 are needed\n"
            "t/candidates/wrong_hidden: 0 candidates where at least 1 is needed\n");
}

TEST_F(CheckDataset, TwoRightOnesAreEnoughOfAnExtraTask) {
  std::string text = read_file(root_ / "t/task.yaml");
  write_file_atomic(root_ / "t/task.yaml", text.replace(text.find("split: train"), 12, "split: extra"));
  for (const char* name : {"c2", "c3", "c4", "c5"}) remove(std::string("candidates/ok/") + name + ".cu");
  EXPECT_EQ(check(), "");
  remove("candidates/ok/c1.cu");
  EXPECT_EQ(check(), "t/candidates/ok: 1 candidates where at least 2 are needed\n");
}

TEST_F(CheckDataset, SameFormUnderOtherNames) {
  add("ok", "d", std::string("// plan: launch kk<<<cdiv(N, 8), 8>>>(x, out, N)\n// other\nc+d ;"));
  EXPECT_EQ(check(),
            "t/candidates/ok/d.cu: differs only in names and constants from t/candidates/ok/c1.cu\n");
}

TEST_F(CheckDataset, SameText) {
  add("wrong_output", "v", std::string(kLaunch) + "1");
  EXPECT_EQ(check(), "t/candidates/wrong_output/w.cu: the same text as t/candidates/wrong_output/v.cu\n");
}

TEST_F(CheckDataset, PlansMustFitEveryShape) {
  add("ok", "d", "// plan: launch k<<<N / 2, 32>>>(x, out)\na - b;");
  add("wrong_output", "v", "// plan: launch k<<<N, 32>>>(y, out)\n");
  EXPECT_EQ(check(),
            "t/candidates/ok/d.cu:1:1: at N=1: grid.x is 0, not 1 to 2147483647\n"
            "t/candidates/wrong_output/v.cu:1:30: unknown name `y` (did you mean `N`?)\n");
}

TEST_F(CheckDataset, TroubleAtAShapeIsWhatSomeAreThereFor) {
  add("launch_error", "l", "// plan: launch k<<<N / 2, 32>>>(x, out)\na;");
  add("out_of_memory", "m", "// plan: temp t float32[1000000000]\n// plan: launch k<<<N, 32>>>(t, out)\n");
  EXPECT_EQ(check(), "");
  add("launch_error", "n", "// plan: temp t float32[1000000000]\n// plan: launch k<<<N, 32>>>(t)\n");
  add("out_of_memory", "o", "// plan: launch k<<<N / 2, 32>>>(x)\n");
  const std::string mistakes = check();
  EXPECT_NE(mistakes.find("t/candidates/launch_error/n.cu:1:1: at N=1"), std::string::npos) << mistakes;
  EXPECT_NE(mistakes.find("t/candidates/out_of_memory/o.cu:1:1: at N=1"), std::string::npos) << mistakes;
}

TEST_F(CheckDataset, CostsMustBeGiven) {
  std::string text = read_file(root_ / "t/task.yaml");
  text.resize(text.find("flops:"));
  write_file_atomic(root_ / "t/task.yaml", text);
  EXPECT_EQ(check(), "t/task.yaml: `flops` is missing\nt/task.yaml: `bytes` is missing\n");
}

TEST_F(CheckDataset, AnEmptyFolderIsAMistake) {
  std::filesystem::remove_all(root_ / "t");
  Diagnostics diagnostics;
  check_dataset(root_, diagnostics);
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_EQ(diagnostics[0].message, "there is no task here");
}

}  // namespace
}  // namespace warpsmith::task
