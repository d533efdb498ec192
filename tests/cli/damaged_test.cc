// What commands say of a run whose run.json or state.json somebody, or a disk, has damaged: the file's name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <functional>

#include "no_permission.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/controller/run_folder.h"

namespace warpsmith::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class DamagedRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    results_ = fs::temp_directory_path() / ("warpsmith-damaged-" + std::to_string(::getpid()));
    for (const char* name : {"whole", "bad"}) {
      make_folders(results_ / name / "stages");
      write(name, "run.json", R"({"name": "a", "workflow": "w", "site": "", "created": 1})");
      write(name, "state.json",
            R"({"state": "finished", "updated": 1, "stages": [{"stage": "a", "state": "finished"}]})");
    }
  }
  void TearDown() override { fs::remove_all(results_); }

  void write(const std::string& run, const std::string& file, const std::string& content) {
    write_file_atomic(results_ / run / file, content);
  }

  std::string command(std::vector<std::string> arguments, int exit_code = kExitOk) {
    CommandContext context;
    context.results = results_;
    CLI::App app;
    add_status(app, context);
    add_list(app, context);
    add_why(app, context);
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants it
    app.parse(arguments);
    ::testing::internal::CaptureStdout();
    try {
      EXPECT_EQ(context.action(), exit_code);
    } catch (...) {
      ::testing::internal::GetCapturedStdout();
      throw;
    }
    std::fflush(stdout);
    return ::testing::internal::GetCapturedStdout();
  }

  fs::path results_;
};

TEST_F(DamagedRunTest, StatusNamesTheFile) {
  EXPECT_THAT(command({"status", (results_ / "bad").string()}), HasSubstr("finished"));
  for (const char* content :
       {"{", "[1]", "5", R"({"state": 7})", R"({"stages": 5})", R"({"stages": [5]})",
        R"({"stages": [{"stage": 5}]})", R"({"stages": [{"stage": "a", "state": "running", "progress": 5}]})",
        R"({"stages": [{"stage": "a", "seconds": "x"}]})", R"({"updated": "x"})",
        R"({"stages": [{"stage": "a"}], "phase_s": {"measure": "x"}})"}) {
    write("bad", "state.json", content);
    for (const std::string& run : {std::string("bad"), (results_ / "bad").string()}) {
      const std::string said = command({"status", run}, kExitEnvironment);
      EXPECT_THAT(said, HasSubstr("bad: unreadable\n")) << content;
      EXPECT_THAT(said, HasSubstr((results_ / "bad/state.json").string() + ":")) << content;
      EXPECT_THAT(said, HasSubstr("`warpsmith run` command sets the file aside")) << content;
      const Json json = Json::parse(command({"status", run, "--json"}, kExitEnvironment));
      EXPECT_EQ(json.at("state"), "unreadable") << content;
      EXPECT_THAT(json.at("problem").get<std::string>(), HasSubstr("state.json")) << content;
    }
  }
}

TEST_F(DamagedRunTest, AnOnlyRunWithoutAReadableStateIsShown) {
  fs::remove_all(results_ / "whole");
  for (const char* content : {"", "{", "[1]", R"({"stages": 5})"}) {
    write("bad", "state.json", content);
    ::testing::internal::CaptureStderr();
    EXPECT_THAT(command({"list"}), MatchesRegex("bad +unreadable +.*bad/state.json.*\n")) << content;
    EXPECT_THAT(command({"status"}, kExitEnvironment), HasSubstr("bad: unreadable\n")) << content;
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << content;
  }
}

TEST_F(DamagedRunTest, WhyAnswersWithoutAReadableState) {
  write("bad", "run.json", Json{{"workflow_file", WARPSMITH_SOURCE_DIR "/tests/workflows/tiny.yaml"}}.dump());
  const std::string before = command({"why", "sft", "--run", "bad"});
  EXPECT_THAT(before, Not(HasSubstr("cannot be read")));
  for (const char* content :
       {"", "{", "5", R"({"executor": 5})", R"({"executor": {"shards": {"queued": "x"}}})"}) {
    write("bad", "state.json", content);
    const std::string said = command({"why", "sft", "--run", "bad"});
    EXPECT_THAT(said, HasSubstr(before.substr(0, before.find('\n')))) << content;
    EXPECT_THAT(said, HasSubstr("cannot be read: " + (results_ / "bad/state.json").string())) << content;
  }
}

TEST_F(DamagedRunTest, ListHasARowForEachAndSaysWhatIsWrong) {
  for (const auto& [file, content] :
       {std::pair("run.json", "{"), std::pair("run.json", R"({"created": "x"})"),
        std::pair("state.json", R"({"stages": [5]})"), std::pair("state.json", R"({"updated": []})")}) {
    SetUp();
    write("bad", file, content);
    const std::string said = command({"list"});
    EXPECT_THAT(said, ContainsRegex("whole +finished +1 of 1 stages")) << file << content;
    EXPECT_THAT(said, ContainsRegex("bad +unreadable +/.*/bad/" + std::string(file))) << file << content;
    EXPECT_THAT(said, Not(HasSubstr("RUN"))) << "a line that is no run's is for people alone";
    const Json rows = Json::parse(command({"list", "--json"}));
    EXPECT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].at("state"), "unreadable") << rows;
    EXPECT_EQ(rows[0].at("stages"), 0) << rows;
  }
}

TEST_F(DamagedRunTest, ListHasTheOthersOfOneThatCannotBeRead) {
  EXPECT_THAT(command({"list"}), ContainsRegex("bad +finished"));
  fs::remove(results_ / "bad/state.json");
  make_folders(results_ / "bad/state.json");
  const std::string said = command({"list"});
  EXPECT_THAT(said, HasSubstr("whole"));
  EXPECT_THAT(said, ContainsRegex("bad +unreadable"));
}

// Whatever lies there in place of a file, the other runs are listed and the bad one is named.
TEST_F(DamagedRunTest, ListGoesPastWhatCannotBeLookedAt) {
  const auto link_to_itself = [&](const fs::path& at) { fs::create_symlink(at.filename(), at); };
  const auto fifo = [&](const fs::path& at) { ASSERT_EQ(::mkfifo(at.c_str(), 0600), 0); };
  const auto folder = [&](const fs::path& at) { make_folders(at); };
  const auto empty = [&](const fs::path& at) { write_file_atomic(at, ""); };
  const std::vector<std::function<void(const fs::path&)>> kinds = {link_to_itself, fifo, folder, empty};
  for (const char* file : {"run.json", "state.json"})
    for (const auto& make : kinds) {
      fs::remove_all(results_);
      SetUp();
      fs::remove(results_ / "bad" / file);
      make(results_ / "bad" / file);
      ::testing::internal::CaptureStderr();
      const std::string said = command({"list"});
      const std::string warned = ::testing::internal::GetCapturedStderr();
      EXPECT_THAT(said, HasSubstr("whole")) << file;
      EXPECT_THAT(said + warned,
                  HasSubstr((results_ / "bad" / file).string()));  // where log lines go is main's to say
      // A run without a readable run.json still says how far it is; one without a state gives way to another.
      const bool has_state = std::string_view(file) == "run.json";
      EXPECT_THAT(command({"status"}), HasSubstr(has_state ? ": finished" : "whole: finished")) << file;
    }
  fs::remove_all(results_ / "bad");
  link_to_itself(results_ / "bad");
  EXPECT_THAT(command({"list"}), HasSubstr("whole"));
  EXPECT_THAT(command({"status"}), HasSubstr("whole: finished"));
}

TEST_F(DamagedRunTest, AFolderThatMayNotBeEnteredHidesNoOther) {
  ::chmod((results_ / "bad").c_str(), 0);
  {
    const NoPermission user;
    if (!user.works()) GTEST_SKIP() << "root cannot become another user here";
    EXPECT_THAT(command({"list"}), HasSubstr("whole"));
    EXPECT_THAT(command({"status"}), HasSubstr("whole: finished"));
    try {
      command({"status", "bad"});
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), HasSubstr("bad/run.json: Permission denied"));
      EXPECT_EQ(e.exit_code(), kExitEnvironment);
    }
  }
  ::chmod((results_ / "bad").c_str(), 0755);
}

// "Never run" would be wrong where nobody may look.
TEST_F(DamagedRunTest, HistoryThatMayNotBeReadIsNoEmptyHistory) {
  make_folders(results_ / "whole/stages/a");
  for (const char* folder : {"stages", "stages/a", "journal"}) {
    make_folders(results_ / "whole" / folder);
    ::chmod((results_ / "whole" / folder).c_str(), 0);
    {
      const NoPermission user;
      if (!user.works()) GTEST_SKIP() << "root cannot become another user here";
      EXPECT_THROW(command({"why", "a", "--run", "whole"}), Error) << folder;
    }
    ::chmod((results_ / "whole" / folder).c_str(), 0755);
  }
  fs::remove(results_ / "whole/stages/a");
  fs::create_symlink("a", results_ / "whole/stages/a");
  EXPECT_THROW(controller::read_history(results_ / "whole"), Error);
}

TEST_F(DamagedRunTest, RunJsonIsReadByType) {
  EXPECT_EQ(read_run_json(results_ / "whole").value("workflow", ""), "w");
  for (const char* content :
       {"", "7", "[]", R"({"site": 5})", R"({"overrides": [1]})", R"({"seed": "x"})", R"({"created": -1})",
        R"({"controller_job": 1.5})", R"({"builds": [{"commit": 5}]})", R"({"builds": ["0.1.0"]})"}) {
    write("bad", "run.json", content);
    EXPECT_THROW(read_run_json(results_ / "bad"), BadContent) << content;
  }
}

}  // namespace
}  // namespace warpsmith::cli
