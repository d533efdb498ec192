// Run folders of version 0.1.0 as of results.h5 schema 7: old_runs.tar.gz has one that finished and one whose
// controller was killed while it measured. They open, report, export, and go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>

#include "scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"

namespace warpsmith {
namespace {

using ::testing::HasSubstr;

class OldRuns : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(std::system(("tar xzf '" WARPSMITH_SOURCE_DIR "/tests/integration/old_runs.tar.gz' -C '" +
                           scratch_.path().string() + "'")
                              .c_str()),
              0);
  }

  // What `warpsmith` prints on stdout. Its exit code must be `expected`.
  std::string warpsmith(const std::string& arguments, int expected = 0) {
    const auto [code, said] = exit_code(arguments);
    EXPECT_EQ(code, expected) << arguments << "\n" << said << read_file(folder_ / "err.txt");
    return said;
  }
  std::pair<int, std::string> exit_code(const std::string& arguments) {
    const std::string command = "cd '" + folder_.string() + "' && '" WARPSMITH_BINARY_DIR "/warpsmith' " +
                                arguments + " >out.txt 2>err.txt </dev/null";
    const int status = std::system(command.c_str());
    EXPECT_TRUE(WIFEXITED(status)) << arguments << ": " << status;
    return {WEXITSTATUS(status), read_file(folder_ / "out.txt")};
  }
  // Runs what `run` has left to do. Its last stage measures the best program of each task again; on a busy
  // machine each measurement may end as `unstable`, and it has nothing to do.
  void go_on(const std::string& run, const std::string& arguments) {
    const auto [code, said] = exit_code("run small.yaml" + arguments);
    EXPECT_EQ(code, 0) << said;
    EXPECT_THAT(said, HasSubstr("finished after"));
    EXPECT_THAT(warpsmith("status " + run, code), HasSubstr("finished"));
  }
  Json exported(const std::string& run, const std::string& more = "") {
    return Json::parse(warpsmith("export " + run + " --format json " + more));
  }

  const Scratch scratch_;
  const fs::path folder_ = scratch_ / "runs";
};

TEST_F(OldRuns, OpenReportAndExport) {
  EXPECT_THAT(warpsmith("list"), HasSubstr("small"));
  EXPECT_THAT(warpsmith("list"), HasSubstr("cut"));
  EXPECT_THAT(warpsmith("status small"), HasSubstr("finished"));
  const Json all = exported("small");
  EXPECT_EQ(all.at("measurements").size(), 6u) << "no row is left out: the scores are those of the samples";
  EXPECT_EQ(all.at("samples").size(), 6u) << "four of the model's, and two programs measured again";
  EXPECT_EQ(all.at("training").size(), 4u);
  EXPECT_EQ(all.at("stages").size(), 4u);
  EXPECT_EQ(read_file(folder_ / "err.txt"), "");
  warpsmith("report small");
  EXPECT_GT(fs::file_size(folder_ / "results/small/report.html"), 1000u);
  const std::string samples = warpsmith("export small --table samples");
  EXPECT_EQ(std::count(samples.begin(), samples.end(), '\n'), 7);
  warpsmith("aggregate small --rebuild");
  EXPECT_EQ(exported("small").at("measurements"), all.at("measurements"));
}

// Nothing is stale; or, where programs behave in another way since, `plan` says why, `run` makes it anew, and
// the old rows stay.
TEST_F(OldRuns, GoOn) {
  const Json before = exported("small").at("measurements");
  const Json plan = Json::parse(warpsmith("plan small.yaml --json"));
  ASSERT_EQ(plan.at("stages").size(), 4u);
  bool stale = false;
  for (const Json& stage : plan.at("stages")) {
    EXPECT_NE(stage.value("reason", ""), "") << stage;
    EXPECT_NE(stage.value("reason", ""), "never run") << stage;
    stale |= stage.value("action", "") == "run";
  }
  if (stale) {
    go_on("small", "");
  } else {
    EXPECT_THAT(warpsmith("run small.yaml"), HasSubstr("nothing to do"));
  }
  const Json after = exported("small", "--all-versions").at("measurements");
  for (const Json& row : before) EXPECT_NE(std::find(after.begin(), after.end(), row), after.end()) << row;
}

// Two of four measurements were recorded, and count where the stage is not stale. `again` measures the best
// of each task that has a score.
TEST_F(OldRuns, AKilledRunGoesOn) {
  EXPECT_EQ(exported("cut").at("measurements").size(), 2u);
  go_on("cut", " --run-dir results/cut");
  std::size_t collected = 0;
  std::set<std::string> scored, again;
  const Json rows = exported("cut").at("measurements");
  for (const Json& row : rows) {
    const bool first = row.at("stage") == "collect";
    collected += first;
    if (first && row.at("verdict") == "ok") scored.insert(row.at("task"));
    if (!first) {
      EXPECT_TRUE(again.insert(row.at("task")).second) << row;
    }
  }
  EXPECT_EQ(collected, 4u) << rows;
  EXPECT_EQ(again, scored) << rows;
}

}  // namespace
}  // namespace warpsmith
