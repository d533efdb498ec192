// What every command does alike: safe text on the terminal, words that were mistyped, exit codes, documents.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <regex>
#include <set>

#include "commands.h"
#include "mistyped.h"
#include "print.h"
#include "run.h"
#include "scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/process/child.h"
#include "warpsmith/records/run_files.h"

namespace warpsmith::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const fs::path kSource = WARPSMITH_SOURCE_DIR;

std::string printed(const std::string& text) {
  testing::internal::CaptureStdout();
  print("%s\n", text);
  std::fflush(stdout);
  return testing::internal::GetCapturedStdout();
}

TEST(Print, NothingThatOthersWroteCommandsTheTerminal) {
  EXPECT_EQ(printed("\x1b]0;title\a"), "\\u001b]0;title\\u0007\n");
  testing::internal::CaptureStdout();
  print_json({}, {{"detail", "\x7f\xc2\x9b\xe2\x80\xae"}});
  const std::string json = testing::internal::GetCapturedStdout();
  EXPECT_EQ(json, "{\"detail\":\"\\u007f\\u009b\\u202e\"}\n");
}

TEST(Print, OurColoursStayAndNobodyElseCanWriteThem) {
  CommandContext context;
  context.colour = true;
  EXPECT_EQ(printed(paint(context, "red", "failed\x1b[2J")), "\x1b[31mfailed\\u001b[2J\x1b[0m\n");
  EXPECT_EQ(printed("\x1b[31mred\x1b<0123456789abcdef>31mred"),
            "\\u001b[31mred\\u001b<0123456789abcdef>31mred\n");
}

std::string slurp(const fs::path& path) { return read_file(path); }

std::vector<fs::path> sources(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  return files;
}

TEST(Print, IsTheOnlyWayOut) {
  const std::regex direct(R"(std::(v?f?printf|puts|fputs|fwrite|perror|cout|cerr|clog)\b|fmt::print\()");
  // The guard prints one fixed line, and is linked with nothing of ours.
  const std::set<fs::path> allowed = {"src/cli/print.cc", "src/base/terminal_text.cc",
                                      "src/process/guard/main.cc"};
  for (const char* folder : {"src", "jobs"})
    for (const fs::path& file : sources(kSource / folder))
      if (file.extension() == ".cc" && !allowed.contains(fs::relative(file, kSource))) {
        EXPECT_FALSE(std::regex_search(slurp(file), direct)) << file << " prints past terminal_text()";
      }
}

TEST(Print, ProgramsWithoutALogAreSafeToo) {
  process::ChildSpec spec;
  const std::string folder = "/proc/no\x1b[2J\a\xe2\x80\xae";
  spec.argv = {std::string(WARPSMITH_BINARY_DIR) + "/warpsmith-shard",
               "--token",
               "t",
               "--base",
               "0",
               "--ends",
               folder,
               "--",
               "true",
               folder + "/job/job.json"};
  if (!fs::exists(spec.argv[0])) GTEST_SKIP() << "no programs of Slurm here";
  const process::ChildResult result = process::run_child(spec);
  EXPECT_EQ(result.exit_code, kExitEnvironment);
  EXPECT_THAT(result.err, HasSubstr("/proc/no\\u001b[2J\\u0007\\u202e"));
}

std::string mistyped(const std::string& line) {
  CLI::App app("", "warpsmith");
  CommandContext context;
  std::string results;
  app.add_option("--results", results);
  add_commands(app, context);
  std::vector<std::string> words;
  std::istringstream in(line);
  for (std::string word; in >> word;) words.push_back(word);
  return unknown_word(app, words);
}

TEST(Mistyped, NamesTheNearest) {
  const std::pair<const char*, const char*> rows[] = {
      {"stauts", "there is no command `stauts` (did you mean `status`? "},
      {"rnu w.yaml", "did you mean `run`?"},
      {"paln w.yaml", "did you mean `plan`?"},
      {"validat x", "did you mean `validate`?"},
      {"--results r lsit", "did you mean `list`?"},
      {"--results=r lsit", "did you mean `list`?"},
      {"frobnicate", "`warpsmith --help` lists the commands"},
      {"run w.yaml --dry-run", "`warpsmith run` has no option `--dry-run` (`warpsmith plan` shows"},
      {"run -n w.yaml", "`warpsmith plan` shows"},
      {"run w.yaml --sede 4", "did you mean `--seed`?"},
      {"run w.yaml --set a=1 --forec x", "did you mean `--force`?"},
      {"status --resluts r", "did you mean `--results`?"},
      {"status -watch", "did you mean `--watch`?"},
      {"status --accept x", "these have it: `run`, `plan`"},
      {"--json list", "in front of the command; it goes behind one of "},
      {"list --frobnicate", "`warpsmith list --help` lists them"},
      {"tasks synthesize --cont 5",
       "`warpsmith tasks synthesize` has no option `--cont` (did you mean `--count`?"},
  };
  for (const auto& [line, said] : rows) EXPECT_THAT(mistyped(line), HasSubstr(said)) << line;
}

TEST(Mistyped, SaysNothingWhereEachWordIsKnown) {
  for (const char* line :
       {"", "status", "--results r status a b", "run --seed -1 w.yaml", "run --set --sed w.yaml", "why list",
        "status -- --x", "status --json", "tasks synthesize --count 5 --into x"})
    EXPECT_EQ(mistyped(line), "") << line;
}

int code_of(std::vector<std::string> words, const fs::path& results, std::string* err = nullptr,
            const Build& build = {}) {
  CLI::App app("", "warpsmith");
  CommandContext context;
  context.build = build;
  context.results = results;
  add_commands(app, context);
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  app.parse(words);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  int code = -1;
  std::string said;
  try {
    code = context.action();
  } catch (const Error& e) {
    code = e.exit_code();
    said = e.what();
  }
  said += testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
  if (err != nullptr) *err = said;
  return code;
}

TEST(Mistyped, RunsAndStagesToo) {
  const Scratch scratch;
  make_folders(scratch / "quickstart" / "journal");
  write_file_atomic(scratch.path() / "quickstart/run.json",
                    "{\"workflow_file\": \"" + (scratch / "w.yaml").string() + "\"}");
  write_file_atomic(scratch / "w.yaml",
                    "schema: warpsmith.workflow/1\nname: w\nstages:\n"
                    "  - {name: gather, kind: command, argv: [\"true\"]}\n");
  std::string said;
  EXPECT_EQ(code_of({"status", "quikstart"}, scratch.path(), &said), kExitUsage);
  EXPECT_THAT(said, HasSubstr("did you mean `quickstart`?"));
  EXPECT_EQ(code_of({"why", "gathre", "--run", "quickstart"}, scratch.path(), &said), kExitUsage);
  EXPECT_THAT(said, HasSubstr("(did you mean `gather`?)"));
}

TEST(ExitCodes, PlanEndsAsRunWould) {
  const Scratch scratch;
  const auto workflow = [&](const std::string& resources) {
    write_file_atomic(scratch / "w.yaml",
                      "schema: warpsmith.workflow/1\nname: w\nstages:\n"
                      "  - {name: c, kind: command, argv: [\"true\"]" +
                          resources + "}\n");
    return (scratch / "w.yaml").string();
  };
  std::string said;
  EXPECT_EQ(code_of({"plan", workflow("")}, scratch.path(), &said), kExitOk) << said;
  const std::string blocked = workflow(", resources: {gpus: 64}");
  EXPECT_EQ(code_of({"plan", blocked}, scratch.path(), &said), kExitUsage) << said;
  EXPECT_THAT(said, HasSubstr("1 of 1 stages cannot run"));
  EXPECT_EQ(code_of({"plan", blocked, "--json"}, scratch.path()), kExitUsage);
  EXPECT_EQ(code_of({"plan", blocked, "--graph"}, scratch.path()), kExitUsage);
  EXPECT_EQ(code_of({"run", blocked, "--quiet"}, scratch.path()), kExitUsage);
}

TEST(RunJson, ListsEachBuildOnce) {
  const Scratch scratch;
  write_file_atomic(scratch / "run.json", R"({"name": "r", "seed": 1, "builds": [{"version": "0.0.9"}]})");
  const Build first{"0.1.0", "0a1b2c3d", "2.11.0", "13.0"}, second{"0.1.0", "11111111-dirty", "2.11.0", ""};
  for (const Build& build : {first, first, second, first}) note_build(scratch.path(), build);
  Json json = read_run_json(scratch.path());
  EXPECT_EQ(json.at("seed"), 1) << "the rest stays";
  ASSERT_EQ(json.at("builds").size(), 3u);
  for (std::size_t i : {1u, 2u}) {
    EXPECT_GT(json["builds"][i].at("since"), 1700000000) << "seconds since 1970";
    json["builds"][i].erase("since");
  }
  EXPECT_EQ(json.at("builds"), Json::parse(R"([{"version": "0.0.9"},
                            {"version": "0.1.0", "commit": "0a1b2c3d", "torch": "2.11.0", "cuda": "13.0"},
                            {"version": "0.1.0", "commit": "11111111-dirty", "torch": "2.11.0"}])"));
}

TEST(RunJson, NotesTheBuildWhereAStageRuns) {
  const Scratch scratch;
  write_file_atomic(scratch / "w.yaml",
                    "schema: warpsmith.workflow/1\nname: w\nstages:\n"
                    "  - {name: c, kind: command, records: none, argv: [\"true\"]}\n");
  const auto run_as = [&](const std::string& commit, std::vector<std::string> more) {
    std::vector<std::string> words = {"run", (scratch / "w.yaml").string(), "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    std::string said;
    EXPECT_EQ(code_of(words, scratch.path(), &said,
                      {.version = "0.1.0", .commit = commit, .torch = "", .cuda = ""}),
              kExitOk)
        << said;
    std::string commits;
    const Json json = read_run_json(scratch / "w");
    for (const Json& build : json.at("builds")) commits += build.value("commit", "?") + " ";
    return commits;
  };
  EXPECT_EQ(run_as("aaaa", {}), "aaaa ");
  EXPECT_EQ(run_as("bbbb", {}), "aaaa ") << "nothing was to do";
  EXPECT_EQ(run_as("cccc", {"--force", "c"}), "aaaa cccc ");
  Json json = read_run_json(scratch / "w");
  json.erase("builds");
  write_file_atomic(scratch / "w/run.json", json.dump());
  EXPECT_EQ(run_as("dddd", {"--force", "c"}), "? dddd ") << "an older version has begun it";
}

TEST(ExitCodes, ASweepIsAskedWhetherItMeasured) {
  const Scratch scratch;
  const fs::path version = scratch / "stages/sweep-H100/01234567";
  EXPECT_FALSE(measured_something(scratch.path()));
  make_folders(version);
  const auto says = [&](const std::string& verdicts) {
    write_file_atomic(version / "output.json", "{\"candidates\": [" + verdicts + "]}");
    return measured_something(scratch.path());
  };
  const std::string no =
      R"({"measurement": {"verdict": "not_measured"}}, {"measurement": {"verdict": "unsupported"}})";
  EXPECT_FALSE(says(""));
  EXPECT_FALSE(says(no));
  EXPECT_TRUE(says(no + R"(, {"measurement": {"verdict": "ok"}})"));
  EXPECT_TRUE(says(R"({"measurement": {"verdict": "wrong_output"}})"));
}

TEST(Documents, EveryVariableThatIsReadIsInTheTable) {
  const std::string table = slurp(kSource / "src/cli/README.md");
  std::set<std::string> read;
  // A name handed to a function, a constant that holds one, or a shell's variable.
  const std::regex names(R"re(getenv\("([A-Z_]+)"\)|"(WARPSMITH_[A-Z_]*[A-Z])"|\$\{?(WARPSMITH[A-Z_]*)\b)re");
  for (const char* folder : {"src", "jobs", "slurm"})
    for (const fs::path& file : sources(kSource / folder)) {
      static const std::set<std::string> kinds = {".cc", ".h", ".py", ".sh", ".sbatch"};
      if (!kinds.contains(file.extension().string())) continue;
      const std::string text = slurp(file);
      for (std::sregex_iterator it(text.begin(), text.end(), names), end; it != end; ++it)
        for (std::size_t group = 1; group <= 3; ++group)
          if ((*it)[group].matched) read.insert((*it)[group]);
    }
  EXPECT_TRUE(read.contains("WARPSMITH_NVML") && read.contains("WARPSMITH_SITES") &&
              read.contains("WARPSMITH"));
  for (const std::string& name : read) EXPECT_THAT(table, HasSubstr("`" + name + "`"));
}

TEST(Documents, EveryExitCodeIsInTheTable) {
  const std::string table = slurp(kSource / "src/cli/README.md");
  const std::string header = slurp(kSource / "include/warpsmith/base/error.h");
  const std::regex code(R"(kExit\w+ = (\d+))");
  int codes = 0;
  for (std::sregex_iterator it(header.begin(), header.end(), code), end; it != end; ++it, ++codes)
    EXPECT_THAT(table, HasSubstr("| " + (*it)[1].str() + " | "));
  EXPECT_EQ(codes, 7);
}

}  // namespace
}  // namespace warpsmith::cli
