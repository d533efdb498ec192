// Completions and the man page: other programs take them, and they have what --help has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "command_table.h"
#include "commands.h"
#include "output_of.h"
#include "scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"

namespace warpsmith::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// The program as main() makes it, and what it prints.
class Program {
 public:
  Program() : app_("Trains models.", "warpsmith") {
    app_.add_option("--results", results_, "Folder that holds the runs");
    app_.footer("Exit codes: 0 done.\n`warpsmith COMMAND --help` shows more.");
    add_commands(app_, context_);
  }
  std::string print(std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());  // as CLI11 takes them
    app_.parse(words);
    testing::internal::CaptureStdout();
    EXPECT_EQ(context_.action(), kExitOk);
    std::fflush(stdout);
    return testing::internal::GetCapturedStdout();
  }
  std::vector<CommandRow> table() { return command_table(app_); }

 private:
  CLI::App app_;
  CommandContext context_;
  std::string results_;
};

bool there_is(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

class Completions : public testing::Test {
 protected:
  Completions() {
    for (const char* file : {"results/first/run.json", "results/second/run.json", "elsewhere/third/run.json",
                             "flows/a.yaml", "flows/b.txt"}) {
      make_folders((scratch_ / file).parent_path());
      write_file_atomic(scratch_ / file, "{}");
    }
    make_folders(scratch_ / "results/no_run");
  }
  // What bash offers for the last word, sorted.
  std::vector<std::string> offered(const std::vector<std::string>& words) {
    std::string list;
    for (const std::string& word : words) list += " '" + word + "'";
    write_file_atomic(scratch_ / "warpsmith.bash", Program().print({"completions", "bash"}));
    const std::string script = "cd " + scratch_.path().string() +
                               "\n. ./warpsmith.bash\nCOMP_WORDS=(warpsmith" + list +
                               ")\nCOMP_CWORD=" + std::to_string(words.size()) +
                               "\n_warpsmith\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
    write_file_atomic(scratch_ / "ask", script);
    std::vector<std::string> out =
        split_lines(output_of("env -u WARPSMITH_RESULTS bash --norc " + (scratch_ / "ask").string()));
    std::erase(out, "");
    std::sort(out.begin(), out.end());
    return out;
  }
  const Scratch scratch_;
};

TEST_F(Completions, OfBashKnowCommandsOptionsRunsAndWorkflows) {
  EXPECT_THAT(offered({"sta"}), ElementsAre("status"));
  EXPECT_THAT(offered({""}), AllOf(Contains("run"), Contains("completions"), Not(Contains("synthesize"))));
  EXPECT_THAT(offered({"status", ""}), ElementsAre("first", "second"));
  EXPECT_THAT(offered({"why", "sft", "--run", "s"}), ElementsAre("second"));
  EXPECT_THAT(offered({"--results", "elsewhere", "status", ""}), ElementsAre("third"));
  EXPECT_THAT(offered({"status", "--w"}), ElementsAre("--watch"));
  EXPECT_THAT(offered({"export", "--format", ""}), ElementsAre("csv", "json", "kernelbench"));
  EXPECT_THAT(offered({"schema", "s"}), ElementsAre("site"));
  EXPECT_THAT(offered({"run", "flows/"}), ElementsAre("flows/a.yaml"));
  EXPECT_THAT(offered({"run", "--set", ""}), ElementsAre()) << "files, by bash itself";
  EXPECT_THAT(offered({"tasks", "s"}), ElementsAre("synthesize"));
  EXPECT_THAT(offered({"tasks", "synthesize", "--held"}), ElementsAre("--heldout"));
  for (const CommandRow& command : Program().table()) {
    if (command.name.empty()) continue;
    std::vector<std::string> words = split(command.name, ' '), names = {"--results"};
    words.emplace_back("--");
    for (const ArgumentRow& option : command.options) names.push_back(option.name);
    std::sort(names.begin(), names.end());
    EXPECT_EQ(offered(words), names) << command.name;
  }
}

TEST_F(Completions, OfZshAndFishAreScriptsOfTheirs) {
  bool skipped = false;
  for (const std::string shell : {"zsh", "fish"}) {
    const std::string script = Program().print({"completions", shell});
    for (const CommandRow& command : Program().table())
      for (const ArgumentRow& option : command.options)
        EXPECT_THAT(script, HasSubstr(shell == "zsh" ? option.name : "-l " + option.name.substr(2)));
    if (!there_is(shell)) {
      skipped = true;
      continue;
    }
    write_file_atomic(scratch_ / "script", script);
    EXPECT_EQ(output_of(shell + " -n " + (scratch_ / "script").string()), "") << shell;
  }
  if (skipped) GTEST_SKIP() << "zsh or fish is not here: its syntax was not checked";
}

TEST(ManPage, HasEveryOptionAndNoWarning) {
  const std::string page = Program().print({"man"});
  for (const CommandRow& command : Program().table()) {
    EXPECT_THAT(page, HasSubstr(command.name.empty() ? ".SH COMMANDS\n" : "\n.SS " + command.name + "\n"));
    for (const ArgumentRow& option : command.options) {
      if (option.name == "--help") continue;
      EXPECT_THAT(page, HasSubstr("\\fB" + replaced(option.name, "-", "\\-") + "\\fR"));
    }
  }
  for (const char byte : page) ASSERT_TRUE(byte == '\n' || (byte >= ' ' && byte < 0x7F));
  if (!there_is("groff")) GTEST_SKIP() << "no groff here";
  const Scratch scratch;
  write_file_atomic(scratch / "warpsmith.1", page);
  EXPECT_EQ(output_of("groff -man -ww -Tascii " + (scratch / "warpsmith.1").string() + " 2>&1 >/dev/null"),
            "");
  const std::string shown = output_of("groff -man -Tutf8 -P-cbou " + (scratch / "warpsmith.1").string());
  EXPECT_THAT(shown,
              AllOf(HasSubstr("warpsmith status [OPTIONS] [RUN]"), HasSubstr("--format csv|json|kernelbench"),
                    HasSubstr("warpsmith export quickstart --table samples --output samples.csv")));
}

}  // namespace
}  // namespace warpsmith::cli
