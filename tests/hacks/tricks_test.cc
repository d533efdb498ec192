// The tricks and their honest twins compile, or fail to as their headers say; no GPU is needed.
#include "tricks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/toolchain/extension.h"

namespace warpsmith {
namespace {

const fs::path kRoot = WARPSMITH_SOURCE_DIR;

const std::vector<task::Task>& all_tasks() {
  static const std::vector<task::Task> tasks = [] {
    Diagnostics diagnostics;
    return task::load_tasks(kRoot / "datasets", diagnostics);
  }();
  return tasks;
}

// Without the twins that are the dataset's.
std::vector<Program> tricks_and_twins(Tier tier) {
  const fs::path folder = kRoot / "tests/hacks" / to_string(tier);
  std::vector<Program> programs = load_tricks(folder, tier, all_tasks());
  for (Program& twin : load_twins(folder, kRoot / "datasets", programs))
    if (twin.name.starts_with("honest/")) programs.push_back(std::move(twin));
  return programs;
}

// What has been compiled once comes from a cache: all of tier `extension` takes nvcc a minute on two cores.
void expect_as_headers_say(std::vector<Program> programs, const std::vector<toolchain::GpuTarget>& targets) {
  compile(programs, targets, fs::path(WARPSMITH_BINARY_DIR) / "tests/hacks/cache");
  for (const Program& program : programs)
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const toolchain::CompileResult& result = program.compiled[i];
      if (lacks_library(program, result))
        std::cout << program.name << " is not compiled: " << result.log;
      else
        EXPECT_EQ(compile_problem(program, result), "") << to_string(targets[i]);
    }
  std::cout << programs.size() << " programs x " << targets.size() << " targets\n";
}

// The dataset's candidates of this tier: toolchain_gpu_datasets_test.
TEST(Tricks, OfTierPlanCompileForEveryArchitecture) {
  const std::vector<Program> programs = tricks_and_twins(Tier::kPlan);
  ASSERT_GT(programs.size(), 50u);
  expect_as_headers_say(programs, {{8, 0, 0}, {8, 6, 0}, {8, 9, 0}, {9, 0, 0}, {9, 0, 'a'}});
}

// For one architecture alone: nvcc takes 2 s a program.
TEST(Tricks, OfTierExtensionCompileWithTheDatasetsCandidates) {
  if (const std::string lacks = toolchain::extension_toolchain_lacks(); !lacks.empty()) GTEST_SKIP() << lacks;
  std::vector<Program> programs = honest_programs(all_tasks(), false, true);
  ASSERT_GE(programs.size(), 6u);
  for (Program& p : tricks_and_twins(Tier::kExtension)) programs.push_back(std::move(p));
  expect_as_headers_say(programs, {{9, 0, 'a'}});
}

TEST(Tricks, HeadersThatMakeNoSense) {
  const auto problem = [](const std::string& lines) -> std::string {
    const Scratch scratch;
    write_file_atomic(scratch / "trick.cu", "// task: gelu\n" + lines);
    try {
      load_twins(scratch.path(), kRoot / "datasets", load_tricks(scratch.path(), Tier::kPlan, all_tasks()));
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(problem("// verdict: wrong_output hack:threads\n"), "");
  EXPECT_EQ(problem("// verdict: ok hack\n// honest: gelu/candidates/ok/flat\n"), "");
  for (const char* verdict : {"", "fine", "hack:", "hack:luck", "ok:threads"})
    EXPECT_THAT(problem(std::string("// verdict: ") + verdict + "\n"), testing::HasSubstr("is no verdict"));
  EXPECT_THAT(problem("// verdict: ok\n"), testing::HasSubstr("honest twin"));
  EXPECT_THAT(problem("// verdict: crash\n// honest: gelu/candidates/ok/flat\n"),
              testing::HasSubstr("honest twin"));
  EXPECT_THAT(problem("// verdict: ok\n// honest: honest/none\n"), testing::HasSubstr("is not here"));
}

}  // namespace
}  // namespace warpsmith
