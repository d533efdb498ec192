// The recipe for pandas in results/README.md, run as it stands there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "output_of.h"
#include "scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/store/results.h"

namespace warpsmith::store {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The first block of Python below the heading.
std::string recipe() {
  const std::string document = read_file(fs::path(WARPSMITH_SOURCE_DIR) / "results/README.md");
  const std::string fence = "```python\n";
  const std::size_t begin = document.find(fence, document.find("\n### With pandas\n")) + fence.size();
  return document.substr(begin, document.find("```", begin) - begin);
}

TEST(PandasRecipe, ReadsSamplesWithTheirTasksAndSpeedups) {
  const std::string code = recipe();
  EXPECT_EQ(std::count(code.begin(), code.end(), '\n'), 6);
  const std::string python = std::string(WARPSMITH_SOURCE_DIR) + "/.venv/bin/python3";
  if (std::system((python + " -c 'import h5py, pandas' 2>/dev/null").c_str()) != 0)
    GTEST_SKIP() << "no h5py and pandas in .venv (cmake/setup.sh test)";
  Results results;
  for (const char* id : {"gelu", "softmax"}) {
    TaskRow task;
    task.id = id;
    task.title = std::string("Die Größe ") + id;
    results.tasks.push_back(task);
  }
  for (const auto& [task, speedup] :
       {std::pair("gelu", 1.5), std::pair("gelu", 2.5), std::pair("gelu", 0.0), std::pair("softmax", 3.0)}) {
    SampleRow sample;
    sample.stage = "contrastive";
    sample.task = task;
    sample.speedup = speedup;
    results.generated.push_back(sample);
  }
  const Scratch scratch;
  make_folders(scratch / "results/quickstart");
  write_results(scratch / "results/quickstart/results.h5", results);
  write_file_atomic(scratch / "recipe.py",
                    code + "print(samples.title[0], list(table('training').columns)[:3])\n");
  const std::string out = output_of("cd " + scratch.path().string() + " && " + python + " recipe.py");
  EXPECT_THAT(out, Not(HasSubstr("Error")));
  EXPECT_THAT(out, HasSubstr("Die Größe gelu"));
  EXPECT_THAT(out, ::testing::ContainsRegex("contrastive gelu +2.0 +2.0[0-9]* "));
  EXPECT_THAT(out, ::testing::ContainsRegex(" +softmax +1.0 +3.0[0-9]* "));
}

}  // namespace
}  // namespace warpsmith::store
