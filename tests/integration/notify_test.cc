// `notify`: the program itself over a workflow of small shell programs; what is told is a line in a file.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"

namespace warpsmith {
namespace {

// A program of a `command` stage with one item: fails where the file that it is given is there, and waits as
// long as that file with "-hold" is.
constexpr const char* kProgram = R"sh(spoilt="$1"
folder="$(dirname "$2")/$3"
n=1
while ! mkdir -p "$folder" || ! mkdir "$folder/$n" 2>/dev/null; do n=$((n + 1)); [ $n -lt 100 ] || exit 1; done
while [ -e "$spoilt-hold" ]; do sleep 0.05; done
[ -e "$spoilt" ] && exit 1
id=$(sed 's/.*"id": *"\([^"]*\)".*/\1/' "$(dirname "$2")/items.jsonl")
printf '{"item": "%s", "index": 0}\n{"end": 1}\n' "$id" > "$folder/$n/records.jsonl"
)sh";

class Notify : public testing::Test {
 protected:
  void SetUp() override { write_file_atomic(scratch_ / "program.sh", kProgram); }

  // Two stages, the second after the first; each tells of itself, and the workflow of the whole.
  void write_workflow() {
    std::string text =
        "schema: warpsmith.workflow/1\n"
        "name: told\n"
        "notify: " +
        commands("workflow") + "\nstages:\n";
    for (const std::string stage : {"first", "second"})
      text += "  - name: " + stage + "\n    kind: command\n" +
              (stage == "second" ? "    needs: first\n" : "") + "    argv: [/bin/sh, ./program.sh, " +
              (scratch_ / ("spoil-" + stage)).string() + "]\n" + "    notify: " + commands(stage) + "\n";
    write_file_atomic(scratch_ / "told.yaml", text);
  }
  std::string commands(const std::string& who) const {
    const auto line = [&](const std::string& key) {
      return key + ": '" + before_ + "echo \"" + who + " " + key +
             " $WARPSMITH_STATE $WARPSMITH_RUN $MARK\" >> " + (scratch_ / "told").string() + after_ + "'";
    };
    return "{" + line("on_end") + ", " + line("on_failure") + "}";
  }

  // The exit code of `warpsmith run`.
  int run(const std::string& arguments = "") {
    write_workflow();
    const std::string command = "cd '" + scratch_.path().string() +
                                "' && echo $$ > pid && MARK=inherited exec '" WARPSMITH_BINARY_DIR
                                "/warpsmith' run told.yaml " +
                                arguments + " >out.txt 2>err.txt </dev/null";
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // Lines since the last call, without the run's folder, which all of them name.
  std::vector<std::string> told() {
    std::vector<std::string> lines;
    std::ifstream in(scratch_ / "told");
    const std::string folder =
        " " + fs::canonical(scratch_.path() / "results" / "told").string() + " inherited";
    for (std::string line; std::getline(in, line);) {
      EXPECT_TRUE(line.ends_with(folder)) << line;
      lines.push_back(line.substr(0, line.size() - std::min(line.size(), folder.size())));
    }
    in.close();
    fs::remove(scratch_ / "told");
    return lines;
  }
  void spoil(const std::string& stage) { write_file_atomic(scratch_ / ("spoil-" + stage), ""); }
  void mend(const std::string& stage) { fs::remove(scratch_ / ("spoil-" + stage)); }
  std::string errors() { return read_file(scratch_ / "err.txt"); }

  const Scratch scratch_;
  std::string before_, after_;  // of each command
};

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

TEST_F(Notify, TellsOfTheEndOnce) {
  EXPECT_EQ(run(), kExitOk) << errors();
  EXPECT_EQ(told(), (Lines{"first on_end finished", "second on_end finished", "workflow on_end finished"}));
  EXPECT_EQ(run(), kExitOk);  // nothing to do
  EXPECT_EQ(told(), Lines{});
  EXPECT_EQ(run("--force second"), kExitOk) << errors();
  EXPECT_EQ(told(), (Lines{"second on_end finished", "workflow on_end finished"}));
}

TEST_F(Notify, TellsOfAFailureAndWhenItGoesOnOnlyOfWhatIsNew) {
  spoil("second");
  EXPECT_EQ(run(), kExitFailed) << errors();
  EXPECT_EQ(told(),
            (Lines{"first on_end finished", "second on_failure failed", "workflow on_failure failed"}));
  mend("second");
  EXPECT_EQ(run(), kExitOk) << errors();
  EXPECT_EQ(told(), (Lines{"second on_end finished", "workflow on_end finished"}));
}

TEST_F(Notify, AStageThatNeverBeganTellsNothing) {
  spoil("first");
  EXPECT_EQ(run(), kExitFailed) << errors();
  EXPECT_EQ(told(), (Lines{"first on_failure failed", "workflow on_failure failed"}));
}

TEST_F(Notify, TellsOfAStageWhenItEndsAlsoWhereTheRunIsInterruptedLater) {
  spoil("second-hold");
  std::future<int> first = std::async(std::launch::async, [&] { return run(); });
  for (int i = 0; i < 600 && !fs::exists(scratch_ / "told"); ++i) std::this_thread::sleep_for(50ms);
  EXPECT_EQ(first.wait_for(0ms), std::future_status::timeout) << "the second stage is still at work";
  ::kill(std::stoi(read_file(scratch_ / "pid")), SIGINT);
  EXPECT_EQ(first.get(), kExitInterrupted) << errors();
  EXPECT_EQ(told(), Lines{"first on_end finished"});
  mend("second-hold");
  EXPECT_EQ(run(), kExitOk) << errors();
  EXPECT_EQ(told(), (Lines{"second on_end finished", "workflow on_end finished"}));
}

TEST_F(Notify, ACommandThatFailsIsAWarningAndNoMore) {
  after_ = "; exit 7";
  EXPECT_EQ(run(), kExitOk) << errors();
  EXPECT_EQ(told().size(), 3u);
  EXPECT_NE(errors().find("did not end well"), std::string::npos) << errors();
  before_ = "kill -9 $$; ";
  after_ = "";
  EXPECT_EQ(run("--force second"), kExitOk) << errors();
  EXPECT_NE(errors().find("did not end well"), std::string::npos) << errors();
  spoil("second");
  EXPECT_EQ(run("--force second"), kExitFailed) << "the failure is the stage's";
}

}  // namespace
}  // namespace warpsmith
