// `warpsmith` as a whole: what main() makes of a command line and of faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/process/child.h"

namespace warpsmith {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

process::ChildResult call(std::vector<std::string> words) {
  process::ChildSpec spec;
  spec.argv = {(program_folder().parent_path() / "warpsmith").string()};
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

}  // namespace
}  // namespace warpsmith
