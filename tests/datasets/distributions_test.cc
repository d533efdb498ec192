// Each distribution of each task checks something: its answers can be decided, and the bound is small beside
// them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>

#include "warpsmith/measure/oracle.h"

namespace warpsmith::measure {
namespace {

// Over the finite results; 0 where there are none.
double root_mean_square(const OutputValues& output) {
  double sum = 0, largest = 0;
  std::size_t count = 0;
  for (const double value : output.reals)
    if (std::isfinite(value) && std::abs(value) < 3.4e38) largest = std::max(largest, std::abs(value));
  if (largest == 0) return 0;
  for (const double value : output.reals) {
    if (!std::isfinite(value) || std::abs(value) > largest) continue;
    sum += value / largest * (value / largest);
    ++count;
  }
  return largest * std::sqrt(sum / static_cast<double>(count));
}

class Distributions : public testing::TestWithParam<const char*> {};

TEST_P(Distributions, EachChecksSomething) {
  configure_torch(1);
  const ValueSource source;
  Diagnostics diagnostics;
  for (const task::Task& task :
       task::load_tasks(std::filesystem::path(WARPSMITH_SOURCE_DIR) / GetParam(), diagnostics)) {
    const Reference reference(task);
    Oracle oracle(task, reference, source, 0);
    std::map<int, int> decided;
    for (const CheckCase& check : check_cases(task, 1)) {
      SCOPED_TRACE(task.id + ", " + describe(check, task));
      const auto expected = oracle.expected(check);
      if (!expected->decidable) continue;
      ++decided[check.distribution];
      for (std::size_t i = 0; i < expected->outputs.size(); ++i) {
        const double size = root_mean_square(expected->outputs[i]);
        // 20 ulp of the largest result are 2 % of it in float16.
        const double share = expected->outputs[i].dtype == task::Dtype::kFloat16 ? 0.1 : 0.005;
        EXPECT_TRUE(size == 0 || expected->bounds[i] < share * size)
            << "a bound of " << expected->bounds[i] << " beside results of " << size;
      }
    }
    const int shapes = static_cast<int>(task.timing.size() + task.hidden.size());
    for (int d = -1; d < static_cast<int>(task.distributions.size()); ++d)
      EXPECT_EQ(decided[d], shapes) << task.id << ", distribution " << d + 1;
  }
  EXPECT_TRUE(diagnostics.empty());
}

INSTANTIATE_TEST_SUITE_P(All, Distributions, testing::Values("datasets", "datasets/families"));

}  // namespace
}  // namespace warpsmith::measure
