// `warpsmith hacks`: what it finds in a run's records, and what becomes of it in a database.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/records/measurement.h"
#include "warpsmith/records/shard.h"

namespace warpsmith::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class HacksCommandTest : public ::testing::Test {
 protected:
  // A run of one stage whose job `job` has given these verdicts.
  void run(const std::string& stage, int round, const std::string& job,
           const std::vector<Measurement>& verdicts) {
    const fs::path folder =
        scratch_ / ("results/found/stages/" + stage + "/0a1b2c3d/" + std::to_string(round) + "/" + job);
    make_folders(folder);
    write_file_atomic(scratch_ / "results/found/run.json", R"({"name": "found"})");
    JobFile file;
    file.stage = stage;
    file.job = job;
    file.round = round;
    file.shards = {{0, verdicts.size()}};
    std::string items;
    for (const Measurement& m : verdicts) {
      const Candidate c = candidate(m);
      items += Json{{"id", c.id}, {"candidate", to_json(c)}}.dump() + "\n";
    }
    write_file_atomic(folder / "items.jsonl", items);
    write_file_atomic(folder / "job.json", to_json(file).dump());
    ShardSession session(folder / "job.json", 0);
    std::size_t i = 0;
    for (const Item& item : session.open_items()) {
      const Measurement& m = verdicts[i++];
      session.write(
          item, job == "compile" ? Json{{"verdict", to_string(m.verdict)}, {"log", m.detail}} : to_json(m));
    }
    session.finish();
  }

  // Programs differ by what is said of them.
  static Candidate candidate(const Measurement& m) {
    return make_plan_candidate("row_softmax", "// " + m.detail + "\nkernel();\n",
                               {"generated", "rl", 1, "", ""});
  }
  static Measurement verdict(Verdict verdict, const std::string& detail, const std::string& hack = "") {
    Measurement m;
    m.verdict = verdict;
    m.detail = detail;
    m.hack = hack;
    m.device = DeviceFacts{.kind = "H100",
                           .name = "NVIDIA H100",
                           .uuid = "",
                           .driver = "",
                           .host = "",
                           .sandbox = "",
                           .extra = {}};
    return m;
  }

  std::string command(std::vector<std::string> arguments) {
    CommandContext context;
    context.results = scratch_ / "results";
    CLI::App app;
    add_hacks(app, context);
    arguments.insert(arguments.begin(), "hacks");
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants it
    app.parse(arguments);
    ::testing::internal::CaptureStdout();
    int code = -1;
    std::string thrown;
    try {
      code = context.action();
    } catch (const Error& e) {
      thrown = e.what();
      EXPECT_EQ(e.exit_code(), kExitUsage);
    }
    std::fflush(stdout);
    const std::string out = ::testing::internal::GetCapturedStdout();
    if (!thrown.empty()) return thrown;
    EXPECT_EQ(code, kExitOk);
    return out;
  }

  std::string database() const { return scratch_ / "hacks"; }

  const Scratch scratch_;
};

TEST_F(HacksCommandTest, ListsWhatTheRecordsConfirm) {
  run("rl", 1, "compile",
      {verdict(Verdict::kSandboxViolation, "reads /etc/passwd"),
       verdict(Verdict::kCompileError, "no such name")});
  run("rl", 2, "measure",
      {verdict(Verdict::kHack, "busy after\x1b[31m the answer", "late_work"), verdict(Verdict::kOk, "fine"),
       verdict(Verdict::kWrongOutput, "out[3]")});
  const std::string text = command({"found"});
  EXPECT_THAT(
      text,
      MatchesRegex("program +kind +tier +task +device +stage/round +reason\n"
                   "[0-9a-f]{8} +sandbox_violation +plan +row_softmax +- +rl/1 +reads /etc/passwd\n"
                   "[0-9a-f]{8} +late_work +plan +row_softmax +H100 +rl/2 +busy after \\[31m the answer\n"));
  EXPECT_EQ(command({}), text) << "the run changed last";
  const Json json = Json::parse(command({"found", "--json"}));
  ASSERT_EQ(json.at("cases").size(), 2u);
  const Json& one = json["cases"][1];
  EXPECT_EQ(one["candidate"], candidate(verdict(Verdict::kHack, "busy after\x1b[31m the answer")).id);
  EXPECT_EQ(one["kind"], "late_work");
  EXPECT_EQ(one["verdict"], "hack");
  EXPECT_EQ(one["run"], "found");
  EXPECT_EQ(one["round"], 2);
  EXPECT_EQ(one["device_name"], "NVIDIA H100");
  EXPECT_FALSE(one.contains("date"));
}

TEST_F(HacksCommandTest, AddsThemToADatabaseOnce) {
  run("rl", 1, "measure",
      {verdict(Verdict::kTooFast, "7 ns a call"), verdict(Verdict::kHack, "busy", "late_work")});
  run("rl", 2, "measure", {verdict(Verdict::kTooFast, "7 ns a call")});  // the same program again
  EXPECT_THAT(command({"found", "--into", database()}),
              HasSubstr("2 added to " + database() + ", 0 there already and left alone\n"));
  const std::string listed = command({database()});
  EXPECT_THAT(listed, HasSubstr("too_fast"));
  EXPECT_THAT(listed, HasSubstr("late_work"));
  run("rl", 3, "measure", {verdict(Verdict::kHack, "threads are left", "threads")});
  const std::string again = command({"found", "--into", database()});
  EXPECT_THAT(again, HasSubstr("rl/1         (there already) 7 ns a call\n"));
  EXPECT_THAT(again, HasSubstr("rl/3         threads are left\n"));
  EXPECT_THAT(again, HasSubstr("1 added to " + database() + ", 2 there already and left alone\n"));
  const Json json = Json::parse(command({"found", "--into", database(), "--json"}));
  EXPECT_EQ(json["into"], database());
  ASSERT_EQ(json["cases"].size(), 3u);
  EXPECT_EQ(json["cases"][0]["added"], false);
  EXPECT_THAT(json["cases"][0]["folder"].get<std::string>(), MatchesRegex("[0-9a-f]{8}-too_fast"));
  const Json cases = Json::parse(command({database(), "--json"}))["cases"];
  ASSERT_EQ(cases.size(), 3u);
  EXPECT_THAT(cases[0]["date"].get<std::string>(), MatchesRegex("20[0-9T:-]+Z"));
  // One database into another.
  EXPECT_THAT(command({database(), "--into", scratch_ / "others"}), HasSubstr("3 added to "));
}

TEST_F(HacksCommandTest, MistakesAreSaid) {
  run("rl", 1, "measure", {verdict(Verdict::kOk, "fine")});
  EXPECT_THAT(command({"found"}), HasSubstr("found holds no confirmed case.\n"));
  EXPECT_THAT(command({"elsewhere"}), HasSubstr("there is no run and no hack database `elsewhere`"));
  make_folders(scratch_ / "hacks/one");
  write_file_atomic(scratch_ / "hacks/one/case.yaml", "schema: warpsmith.hack/1\nkind: x: y\n");
  EXPECT_THAT(command({database()}), HasSubstr("hacks/one/case.yaml:2:8: bad YAML"));
  EXPECT_THAT(command({"found", "--into", database()}), HasSubstr("hacks/one/case.yaml:2:8: bad YAML"));
}

}  // namespace
}  // namespace warpsmith::cli
