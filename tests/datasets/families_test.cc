// The families of tasks below datasets/families: what README.md there says of them, and the values that
// log_bessel_i and log_bessel_k are held to.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "warpsmith/base/files.h"
#include "warpsmith/measure/reference.h"
#include "warpsmith/task/check.h"

namespace warpsmith::measure {
namespace {

namespace fs = std::filesystem;

const fs::path kDatasets = fs::path(WARPSMITH_SOURCE_DIR) / "datasets";
const fs::path kFamilies = kDatasets / "families";

std::string join(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) text += to_string(diagnostic) + "\n";
  return text;
}

TEST(Families, HaveNoMistake) {
  Diagnostics diagnostics;
  const task::DatasetCount count = task::check_dataset(kFamilies, diagnostics);
  EXPECT_TRUE(diagnostics.empty()) << join(diagnostics);
  EXPECT_EQ(count.tasks, 14);
  EXPECT_GE(count.candidates, 14 * 5);
}

// Workflows that name datasets/ train on all of it: families are no part of that.
TEST(Families, AreNoTasksOfTheFolderAbove) {
  Diagnostics diagnostics;
  std::set<std::string> above;
  for (const task::Task& task : task::load_tasks(kDatasets, diagnostics)) above.insert(task.id);
  for (const task::Task& task : task::load_tasks(kFamilies, diagnostics)) {
    EXPECT_FALSE(above.contains(task.id)) << task.id;
    EXPECT_EQ(task.split, task::Split::kExtra) << task.id;
  }
  EXPECT_FALSE(above.empty());
  EXPECT_TRUE(diagnostics.empty()) << join(diagnostics);
}

// Each NAME_cpu.cu is the CPU's form of a NAME.cu beside it.
TEST(Families, FormsForTheCpuHaveTheirOriginal) {
  Diagnostics diagnostics;
  int pairs = 0;
  for (const task::Task& task : task::load_tasks(kFamilies, diagnostics)) {
    std::set<std::string> right;
    for (const task::CandidateFile& file : task::load_candidate_files(task, diagnostics))
      if (file.expected == "ok") right.insert(file.name);
    for (const std::string& name : right) {
      if (!name.ends_with("_cpu")) continue;
      ++pairs;
      EXPECT_TRUE(right.contains(name.substr(0, name.size() - 4))) << task.id << ": " << name;
    }
  }
  EXPECT_EQ(pairs, 3);
}

class BesselValues : public testing::TestWithParam<const char*> {};

TEST_P(BesselValues, AreThoseOfMpmath) {
  const fs::path folder = kFamilies / GetParam();
  std::istringstream lines(read_file(folder / "values.csv"));
  std::string line;
  std::getline(lines, line);
  ASSERT_EQ(line, "v,x,log");
  std::vector<double> v, x, wanted;
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string field[3];
    for (std::string& text : field) ASSERT_TRUE(std::getline(fields, text, ',')) << line;
    v.push_back(std::stod(field[0]));
    x.push_back(std::stod(field[1]));
    wanted.push_back(std::stod(field[2]));
  }
  ASSERT_EQ(v.size(), 200u);
  ASSERT_EQ(*std::max_element(v.begin(), v.end()), 1e4);
  ASSERT_EQ(*std::min_element(x.begin(), x.end()), 1e-8);

  configure_torch(1);
  Diagnostics diagnostics;
  const auto task = task::load_task(folder, diagnostics);
  ASSERT_TRUE(task) << join(diagnostics);
  const Reference reference(*task);
  const std::vector<OutputValues> outputs =
      reference.run({{"N", static_cast<std::int64_t>(v.size())}},
                    {std::as_bytes(std::span(v)), std::as_bytes(std::span(x))});
  for (std::size_t i = 0; i < v.size(); ++i)
    EXPECT_NEAR(outputs[0].reals[i], wanted[i], 1e-10) << "v = " << v[i] << ", x = " << x[i];
}

INSTANTIATE_TEST_SUITE_P(All, BesselValues, testing::Values("log_bessel_i", "log_bessel_k"));

}  // namespace
}  // namespace warpsmith::measure
