// Every candidate of datasets/ for every architecture: what is right compiles, what is `compile_error` does
// not.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/toolchain/gpu.h"

namespace warpsmith::toolchain {
namespace {

std::vector<task::Task> all_tasks() {
  Diagnostics diagnostics;
  std::vector<task::Task> tasks;
  for (const char* folder : {"datasets", "datasets/families"})
    for (task::Task& task : task::load_tasks(fs::path(WARPSMITH_SOURCE_DIR) / folder, diagnostics))
      tasks.push_back(std::move(task));
  return tasks;
}

const std::vector<GpuTarget> kTargets = {{8, 0, 0}, {8, 6, 0}, {8, 9, 0}, {9, 0, 0}, {9, 0, 'a'}};

const task::Task& task_of(const std::string& id) {
  static const std::vector<task::Task> tasks = all_tasks();
  return *std::ranges::find(tasks, id, &task::Task::id);
}

std::vector<std::string> ids_of(const std::vector<task::Task>& tasks) {
  std::vector<std::string> ids;
  for (const task::Task& task : tasks) ids.push_back(task.id);
  return ids;
}

class GpuDatasets : public ::testing::TestWithParam<std::string> {};

TEST_P(GpuDatasets, CompileForEveryArchitecture) {
  const task::Task& task = task_of(GetParam());
  CompileOptions options;
  options.cache =
      fs::temp_directory_path() / ("warpsmith-gpu-datasets-" + task.id + std::to_string(::getpid()));
  options.timeout_s = 60;  // of a loaded machine
  Diagnostics diagnostics;
  int candidates = 0;
  double seconds = 0;
  for (const task::CandidateFile& file : task::load_candidate_files(task, diagnostics)) {
    const auto results =
        compile_for_gpus(make_plan_candidate(task.id, file.source, {}), task, kTargets, options);
    const Verdict wanted = file.expected == "compile_error" ? Verdict::kCompileError : Verdict::kOk;
    for (std::size_t i = 0; i < kTargets.size(); ++i) {
      // What the twin cannot run may be nothing for an older architecture either.
      if (file.expected == "unsupported" && kTargets[i].major < 9 &&
          results[i].verdict == Verdict::kUnsupported)
        continue;
      EXPECT_EQ(results[i].verdict, wanted) << file.path.string() << " for " << to_string(kTargets[i]) << "\n"
                                            << results[i].log;
    }
    ++candidates;
    seconds += results.back().seconds;
  }
  EXPECT_TRUE(diagnostics.empty());
  EXPECT_GT(candidates, 0);
  std::cout << task.id << ": " << candidates << " candidates x " << kTargets.size() << " targets in "
            << seconds << " s\n";
  fs::remove_all(options.cache);
}

INSTANTIATE_TEST_SUITE_P(All, GpuDatasets, ::testing::ValuesIn(ids_of(all_tasks())),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace warpsmith::toolchain
