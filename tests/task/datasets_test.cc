// The tasks that come with Warpsmith hold to what datasets/README.md promises of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "warpsmith/task/check.h"
#include "warpsmith/task/launch_plan.h"

namespace warpsmith::task {
namespace {

const std::filesystem::path kDatasets = std::filesystem::path(WARPSMITH_SOURCE_DIR) / "datasets";

std::string join(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) text += to_string(diagnostic) + "\n";
  return text;
}

// Loads, plans at every shape, counts by expected verdict, forms: all in check_dataset, whose own test is
// check_test.
TEST(Datasets, HaveNoMistake) {
  Diagnostics diagnostics;
  const DatasetCount count = check_dataset(kDatasets, diagnostics);
  EXPECT_TRUE(diagnostics.empty()) << join(diagnostics);
  EXPECT_GE(count.tasks, 30);
  EXPECT_GE(count.candidates, 30 * 9);
}

TEST(Datasets, HaveTheSplitsAndLevels) {
  Diagnostics diagnostics;
  std::map<Split, int> splits;
  std::map<int, int> levels;
  for (const Task& task : load_tasks(kDatasets, diagnostics)) {
    ++splits[task.split];
    ++levels[task.level];
  }
  EXPECT_GE(splits[Split::kTrain], 12);
  EXPECT_GE(splits[Split::kHeldoutCombination], 2);
  EXPECT_GE(splits[Split::kHeldoutOperation], 2);
  EXPECT_GE(levels[1], 1);
  EXPECT_GE(levels[2], 1);
  EXPECT_GE(levels[3], 1);
}

// A held-out combination is a new chain of parts that were trained; a held-out operation has one that was
// not.
TEST(Datasets, HeldOutTasksAreWhatTheySay) {
  Diagnostics diagnostics;
  const std::vector<Task> tasks = load_tasks(kDatasets, diagnostics);
  std::map<std::string, int> trained;
  for (const Task& task : tasks)
    if (task.split == Split::kTrain)
      for (const std::string& op : task.ops) ++trained[op];
  for (const Task& task : tasks) {
    const auto known = [&](const std::string& op) { return trained.count(op) != 0; };
    if (task.split == Split::kHeldoutCombination) {
      EXPECT_TRUE(std::all_of(task.ops.begin(), task.ops.end(), known)) << task.id;
      for (const Task& other : tasks)
        EXPECT_TRUE(other.split != Split::kTrain || other.ops != task.ops) << task.id << " and " << other.id;
    }
    if (task.split == Split::kHeldoutOperation) {
      EXPECT_FALSE(std::all_of(task.ops.begin(), task.ops.end(), known)) << task.id;
    }
  }
}

// A small model with a context of about 1,000 tokens must be able to write what it is trained on.
TEST(Datasets, TrainedCandidatesAreShort) {
  Diagnostics diagnostics;
  for (const Task& task : load_tasks(kDatasets, diagnostics)) {
    if (task.split != Split::kTrain) continue;
    for (const CandidateFile& file : load_candidate_files(task, diagnostics))
      EXPECT_LE(file.source.size(), 1000u) << file.path;
  }
}

// `wrong_hidden` needs a hidden shape that is no multiple of the usual tiles; one with a size 1 is a corner
// of its own.
TEST(Datasets, HiddenShapesAreOdd) {
  Diagnostics diagnostics;
  for (const Task& task : load_tasks(kDatasets, diagnostics)) {
    bool odd = false, one = false;
    for (const Dims& dims : task.hidden) {
      for (const auto& [name, size] : dims) {
        odd = odd || size % 8 != 0;
        one = one || size == 1;
      }
    }
    EXPECT_TRUE(odd) << task.id;
    EXPECT_TRUE(one) << task.id;
  }
}

}  // namespace
}  // namespace warpsmith::task
