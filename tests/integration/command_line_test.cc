// `warpsmith` as a whole: what main() makes of a command line and of faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/process/child.h"

namespace warpsmith {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

const std::string kProgram = (program_folder().parent_path() / "warpsmith").string();

// `before`: words before the program's name, if something else starts it.
process::ChildResult call(const std::vector<std::string>& words,
                          const std::vector<std::string>& before = {}) {
  process::ChildSpec spec;
  spec.argv = before;
  spec.argv.push_back(kProgram);
  spec.argv.insert(spec.argv.end(), words.begin(), words.end());
  spec.sandbox.allow_processes = true;
  spec.limits.wall_s = 60;
  return process::run_child(spec);
}

TEST(CommandLine, AMistypedWordIsNamedWithTheNearest) {
  const process::ChildResult command = call({"stauts"});
  EXPECT_EQ(command.exit_code, kExitUsage);
  EXPECT_THAT(command.err, HasSubstr("did you mean `status`?"));
  EXPECT_EQ(command.out, "");
  const process::ChildResult option = call({"run", "w.yaml", "--dry-run"});
  EXPECT_EQ(option.exit_code, kExitUsage);
  EXPECT_THAT(option.err, HasSubstr("`warpsmith plan` shows"));
  EXPECT_EQ(call({}).exit_code, kExitUsage);
  EXPECT_EQ(call({"run"}).exit_code, kExitUsage);
  EXPECT_EQ(call({"--help"}).exit_code, kExitOk);
  EXPECT_THAT(call({"--version"}).out,
              MatchesRegex("warpsmith [0-9.]+ \\(commit [0-9a-z-]+, (without torch|torch [0-9.]+), "
                           "(without CUDA|CUDA [0-9.]+)\\)\n"));
  EXPECT_EQ(call({"status", "--help"}).exit_code, kExitOk);
}

TEST(CommandLine, ResultsStandBeforeOrBehindTheCommand) {
  const Scratch scratch;
  make_folders(scratch / "r" / "mine");
  write_file_atomic(scratch / "r" / "mine" / "run.json", "{}");
  const std::string results = (scratch / "r").string();
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--results", results, "list"},
                                                {"list", "--results", results},
                                                {"list", "--results=" + results}}) {
    const process::ChildResult result = call(words);
    EXPECT_EQ(result.exit_code, kExitOk) << result.err;
    EXPECT_THAT(result.out, HasSubstr("mine"));
  }
}

TEST(CommandLine, AFileThatCannotBeLookedAtIsNoInternalError) {
  const Scratch scratch;
  make_folders(scratch / "r" / "bad");
  fs::create_symlink("run.json", scratch / "r" / "bad" / "run.json");
  fs::create_symlink("loop", scratch / "loop");
  write_file_atomic(scratch / "bad.yaml",
                    "schema: warpsmith.workflow/1\nname: bad\nstages:\n"
                    "  - {name: c, kind: command, argv: [\"true\"]}\n");
  const std::string results = (scratch / "r").string(), file = (scratch / "bad.yaml").string();
  EXPECT_EQ(call({"--results", results, "list"}).exit_code, kExitOk);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"run", file},
                                                {"plan", file},
                                                {"status", "bad"},
                                                {"why", "c"},
                                                {"logs", "c"},
                                                {"report"},
                                                {"cancel"},
                                                {"clean"},
                                                {"export"},
                                                {"hacks", "bad"},
                                                {"aggregate", "bad"},
                                                {"validate", (scratch / "loop").string()},
                                                {"run", file, "--run-dir", (scratch / "loop").string()},
                                                {"plan", file, "--run-dir", std::string(300, 'x')}}) {
    std::vector<std::string> all = {"--results", results};
    all.insert(all.end(), words.begin(), words.end());
    const process::ChildResult result = call(all);
    EXPECT_NE(result.exit_code, kExitOk) << words[0];
    EXPECT_NE(result.err, "") << words[0];
    EXPECT_THAT(result.err, Not(HasSubstr("internal error"))) << words[0];
    EXPECT_THAT(result.err, Not(HasSubstr("filesystem error"))) << words[0];
  }
}

// The commands that `warpsmith --help` lists.
std::set<std::string> commands() {
  std::set<std::string> names;
  std::istringstream help(call({"--help"}).out);
  bool here = false;
  for (std::string line; std::getline(help, line);) {
    if (line.empty()) here = false;
    if (here && line[2] != ' ') names.insert(line.substr(2, line.find(' ', 2) - 2));
    if (line == "Subcommands:") here = true;
  }
  return names;
}

// Every command, started in a folder that has been removed.
TEST(CommandLine, ARemovedWorkingFolderIsNamed) {
  const Scratch scratch;
  write_file_atomic(scratch / "w.yaml",
                    "schema: warpsmith.workflow/1\nname: w\nstages:\n"
                    "  - {name: c, kind: command, argv: [\"true\"]}\n");
  make_folders(scratch / "results/w");
  write_file_atomic(scratch / "results/w/run.json", "{}");
  const std::string file = (scratch / "w.yaml").string(), run = (scratch / "results/w").string();
  const std::map<std::string, std::vector<std::string>> arguments = {
      {"run", {file}},
      {"plan", {file}},
      {"validate", {file}},
      {"sweep", {run, "--gpu", "H100"}},
      {"bench", {"gelu", (scratch / "k.cu").string()}},
      {"import", {"kernelbench", (scratch / "kb").string(), "--into", (scratch / "tasks").string()}},
      {"tasks", {scratch.path().string()}},
      {"compare", {run, run}},
      {"status", {run}},
      {"logs", {"c"}},
      {"why", {"c"}},
      {"cancel", {run}},
      {"clean", {run}},
      {"pack", {run}},
      {"unpack", {(scratch / "w.pack").string()}},
      {"doctor", {}},
      {"schema", {}},
      {"list", {}},
      {"aggregate", {run}},
      {"report", {run}},
      {"open", {run}},
      {"completions", {"bash"}},
      {"man", {}},
      {"hacks", {run}},
      {"export", {run}}};
  for (const std::string& command : commands()) {
    ASSERT_TRUE(arguments.contains(command)) << "a new command: give it arguments here";
    for (const bool absolute : {true, false}) {
      const fs::path gone = scratch / "gone";
      make_folders(gone);
      std::vector<std::string> words = {command};
      for (const std::string& argument : arguments.at(command))
        words.push_back(absolute || argument[0] != '/' ? argument : fs::path(argument).filename().string());
      const process::ChildResult result =
          call(words, {"/bin/sh", "-c", "cd \"$0\" && rmdir \"$0\" && exec \"$@\"", gone.string()});
      EXPECT_EQ(result.exit_code, kExitEnvironment) << command;
      EXPECT_EQ(result.err,
                "warpsmith: the working folder cannot be used: No such file or directory (cd to one that "
                "exists)\n")
          << command;
      EXPECT_EQ(result.out, "") << command;
    }
  }
  EXPECT_EQ(commands().size(), arguments.size());
}

}  // namespace
}  // namespace warpsmith
