// `warpsmith compare`: two folders of runs, or one and a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "scratch.h"
#include "store/run_fixture.h"
#include "warpsmith/cli/command.h"

namespace warpsmith::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class CompareCommandTest : public ::testing::Test {
 protected:
  // Exit code, and what was printed on stdout.
  std::pair<int, std::string> compare(std::vector<std::string> words) {
    CLI::App app("", "warpsmith");
    CommandContext context;
    context.results = scratch_.path();
    add_compare(app, context);
    words.insert(words.begin(), "compare");
    std::reverse(words.begin(), words.end());  // as CLI11 takes them
    app.parse(words);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    int code = -1;
    try {
      code = context.action();
    } catch (const Error& e) {
      code = e.exit_code();
      said_ = e.what();
    }
    std::string out = testing::internal::GetCapturedStdout();
    said_ += testing::internal::GetCapturedStderr();
    return {code, out};
  }
  void runs() {
    store_fixture::make_run(scratch_ / "one", {});
    store_fixture::make_run(scratch_ / "two", {.speedup = 3});
  }
  Scratch scratch_;
  std::string said_;
};

TEST_F(CompareCommandTest, TwoRuns) {
  runs();
  const auto [code, out] = compare({"one", "two"});
  EXPECT_EQ(code, kExitOk) << said_;
  EXPECT_THAT(out, HasSubstr("\nrow_softmax  cpu     eager     1.50× [1.49, 1.52]  3.00× [2.97, 3.03]  2.00× "
                             "[1.97, 2.03] faster\n"));
  EXPECT_THAT(
      out,
      HasSubstr("Tasks, by the fastest correct program: 1 paired; B/A over 1 with a speedup on both sides: "
                "geometric mean 2.000×, median 2.000×; 1 significantly faster, 0 slower\n"));
  EXPECT_THAT(out, HasSubstr("Programs that both have measured: 6 paired; "));
  const auto by_program = compare({"one", "two", "--by", "program"}).second;
  EXPECT_EQ(std::count(by_program.begin(), by_program.end(), '\n'), 2 + 1 + 1 + 6 + 1 + 2);
}

TEST_F(CompareCommandTest, ForOtherPrograms) {
  runs();
  const Json json = Json::parse([&] {
    const auto [code, out] = compare({"one", "two", "--json"});
    EXPECT_EQ(code, kExitOk);
    return out;
  }());
  EXPECT_EQ(json.at("schema"), "warpsmith.comparison/1");
  EXPECT_EQ(json.at("programs").at("paired"), 6);
  EXPECT_NEAR(json.at("tasks").at("geometric_mean").get<double>(), 2, 1e-9);
  EXPECT_THAT(compare({"one", "two", "--format", "csv"}).second,
              StartsWith("task,candidate,device,baseline,a_candidate,"));
  const std::string file = (scratch_ / "out.csv").string();
  EXPECT_EQ(compare({"one", "two", "--format", "csv", "--by", "program", "--output", file}).second, "");
  const std::string csv = read_file(file);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 7);
}

TEST_F(CompareCommandTest, PublishedScores) {
  runs();
  write_file_atomic(scratch_ / "h100.json",
                    R"({"level_id": "1", "task_id": "19", "custom_code": "x", "score_default": "3.0"})");
  const std::string file = (scratch_ / "h100.json").string();
  auto [code, out] = compare({"one", file});
  EXPECT_EQ(code, kExitFailed) << "nothing is paired";
  EXPECT_THAT(said_, HasSubstr("nothing could be paired"));
  EXPECT_THAT(out, HasSubstr("Note: B's scores are published ones"));
  EXPECT_THAT(out, HasSubstr("1: only in B: level1/19\n"));
  EXPECT_THAT(out, Not(HasSubstr("\n\n\n")));
}

TEST_F(CompareCommandTest, MistakesEndWithTheirCodes) {
  runs();
  EXPECT_EQ(compare({"one", "tow"}).first, kExitUsage);
  EXPECT_THAT(said_, HasSubstr("did you mean `two`?"));
  EXPECT_EQ(compare({"nothing", "two"}).first, kExitUsage);
  EXPECT_EQ(compare({"one", ""}).first, kExitUsage) << "not the run that was changed last";
  write_file_atomic(scratch_ / "empty.json", "");
  EXPECT_EQ(compare({"one", (scratch_ / "empty.json").string()}).first, kExitUsage);
}

}  // namespace
}  // namespace warpsmith::cli
