// `warpsmith validate` and `warpsmith schema` as called: which file is read as what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "../scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/workflow/load.h"
#include "warpsmith/workflow/site.h"

namespace warpsmith::cli {
namespace {

using ::testing::HasSubstr;

const fs::path kSource = WARPSMITH_SOURCE_DIR;

struct Answer {
  int code = -1;
  std::string out, err;
};

Answer call(std::vector<std::string> words) {
  CLI::App app;
  CommandContext context;
  add_validate(app, context);
  add_schema(app, context);
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  app.parse(words);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Answer answer;
  answer.code = context.action();
  answer.out = testing::internal::GetCapturedStdout();
  answer.err = testing::internal::GetCapturedStderr();
  return answer;
}

TEST(Validate, SiteFilesAreGood) {
  const std::string site = (kSource / "slurm/sites/dev.yaml").string();
  const Answer answer = call({"validate", site});
  EXPECT_EQ(answer.code, kExitOk);
  EXPECT_EQ(answer.out, site + ": good (site dev, GPU types H100, H20, L40, RTX3090)\n");
  EXPECT_EQ(answer.err, "");
}

TEST(Validate, SitesAndWorkflowsStandSideBySide) {
  const Answer answer = call({"validate", (kSource / "slurm/sites/example.yaml").string(),
                              (kSource / "tests/workflows/tiny.yaml").string()});
  EXPECT_EQ(answer.code, kExitOk) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("good (site example"));
  EXPECT_THAT(answer.out, HasSubstr("good (workflow "));
}

TEST(Validate, MistakesOfASiteHaveTheirPlace) {
  const Scratch scratch;
  const std::string site = scratch / "s.yaml", broken = scratch / "broken.yaml";
  write_file_atomic(site,
                    "schema: warpsmith.site/1\nname: lab\ncpu: {partiton: x}\ngpus: {L40: {qos: a b}}\n");
  write_file_atomic(broken, "schema: warpsmith.site/1\nname: a: b\n");
  const Answer answer = call({"validate", site, broken});
  EXPECT_EQ(answer.code, kExitUsage);
  EXPECT_THAT(answer.err,
              HasSubstr(site + ":3:7: `cpu`: key `partiton` is not known (did you mean `partition`?)\n"));
  EXPECT_THAT(answer.err, HasSubstr(site + ":4:19: `qos`: `a b` cannot be passed on to Slurm"));
  EXPECT_THAT(answer.err, HasSubstr(broken + ":2:8: bad YAML"));
  EXPECT_THAT(answer.err, HasSubstr("3 mistakes\n"));
  EXPECT_EQ(answer.out, "");
}

TEST(Validate, MistakesOfASiteAsJson) {
  const Scratch scratch;
  const std::string site = scratch / "s.yaml";
  write_file_atomic(site, "schema: warpsmith.site/1\nname: lab\ncpu: {twin: true}\n");
  const Answer answer = call({"validate", "--json", site});
  EXPECT_EQ(answer.code, kExitUsage);
  const Json mistakes = Json::parse(answer.out).at(0).at("mistakes");
  ASSERT_EQ(mistakes.size(), 1u);
  EXPECT_EQ(mistakes[0].at("line"), 3);
  EXPECT_EQ(mistakes[0].at("message"), "`twin` belongs to a GPU type");
}

TEST(Validate, OverridesAreNotForSites) {
  const Answer answer = call({"validate", (kSource / "slurm/sites/dev.yaml").string(), "--set", "name=x"});
  EXPECT_EQ(answer.code, kExitOk);
  EXPECT_THAT(answer.err, HasSubstr("--set changes workflows alone"));
}

TEST(Validate, FileThatIsNotThereIsAMistake) {
  const Answer answer = call({"validate", "/nowhere/w.yaml"});
  EXPECT_EQ(answer.code, kExitUsage);
  EXPECT_THAT(answer.err, HasSubstr("/nowhere/w.yaml"));
}

void write(const fs::path& path, const std::string& text) {
  make_folders(path.parent_path());
  write_file_atomic(path, text);
}

// A task that is good, and candidates of all tiers below it.
fs::path task_with_candidates(const Scratch& scratch) {
  const fs::path folder = scratch / "double";
  write(folder / "task.yaml",
        "schema: warpsmith.task/1\ntitle: Double\nlevel: 1\nsplit: extra\nops: [scale]\ndims: [N]\n"
        "inputs: {x: {shape: [N]}}\noutputs: {out: {shape: [N]}}\n"
        "reference: |\n  def forward(x: Tensor) -> Tensor:\n    return x * 2\n"
        "timing: [{N: 1024}]\nhidden: [{N: 1}]\n");
  write(folder / "candidates/ok/plain.cu", "// plan: launch k<<<1, 1>>>(x)\n");
  write(folder / "extension/ok/plain.cu", "");
  write(folder / "python/ok/plain.py", "def forward(x):\n  return x * 2\n");
  write(folder / "python/ok/parts/model.py", "from part import forward\n");
  write(folder / "python/ok/parts/part.py", "def forward(x):\n  return x + x\n");
  return folder;
}

TEST(Validate, CandidatesOfEveryTierAreCounted) {
  const Scratch scratch;
  const std::string folder = task_with_candidates(scratch);
  const Answer answer = call({"validate", folder});
  EXPECT_EQ(answer.code, kExitOk) << answer.err;
  EXPECT_EQ(answer.out, folder + ": good (1 task, 4 candidates)\n");
}

TEST(Validate, MistakesOfCandidatesHaveTheirPlace) {
  const Scratch scratch;
  const fs::path folder = task_with_candidates(scratch);
  write(folder / "extension/ok/notes.py", "");
  write(folder / "python/ok/nothing.py", "x = 1\n");
  write(folder / "python/wrong_outputs/plain.py", "def forward(x): ...\n");
  const Answer answer = call({"validate", folder.string()});
  EXPECT_EQ(answer.code, kExitUsage);
  EXPECT_THAT(answer.err, HasSubstr("extension/ok/notes.py: a candidate of one file ends in .cu"));
  EXPECT_THAT(answer.err, HasSubstr("python/ok/nothing.py:1:1: defines neither `ModelNew` nor `forward`"));
  EXPECT_THAT(answer.err, HasSubstr("(did you mean `wrong_output`?)"));
  EXPECT_THAT(answer.err, HasSubstr("3 mistakes\n"));
}

TEST(Validate, PlansOfOneTaskAreChecked) {
  const Scratch scratch;
  const fs::path folder = task_with_candidates(scratch);
  write(folder / "candidates/ok/unknown.cu", "// plan: launch k<<<1, 1>>>(y)\n");
  write(folder / "candidates/ok/shape.cu", "// plan: launch k<<<N - 1, 1>>>(x)\n");
  write(folder / "candidates/launch_error/shape.cu", "// plan: launch j<<<N - 1, 1>>>(x)\n");
  const Answer answer = call({"validate", folder.string()});
  EXPECT_EQ(answer.code, kExitUsage);
  EXPECT_THAT(answer.err, HasSubstr("ok/unknown.cu:1:29: unknown name `y`"));
  EXPECT_THAT(answer.err, HasSubstr("ok/shape.cu:1:1: at N=1: grid.x is 0"));
  EXPECT_THAT(answer.err, HasSubstr("2 mistakes\n"));
}

TEST(Validate, DevicesThatAreNone) {
  const Scratch scratch;
  const std::string folder = task_with_candidates(scratch);
  const auto code_of = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"validate", folder});
    try {
      return call(words).code;
    } catch (const Error& e) {
      testing::internal::GetCapturedStdout();
      testing::internal::GetCapturedStderr();
      return e.exit_code();
    }
  };
  EXPECT_EQ(code_of({"--device", "CPU"}), kExitUsage);
  EXPECT_EQ(code_of({"--device", "Auto", "--measure"}), kExitUsage);
  EXPECT_EQ(code_of({"--device", "nope", "--measure"}), kExitEnvironment);
}

TEST(Schema, PrintsTheFormatThatIsNamed) {
  EXPECT_EQ(Json::parse(call({"schema"}).out), workflow::workflow_json_schema());
  EXPECT_EQ(Json::parse(call({"schema", "workflow"}).out), workflow::workflow_json_schema());
  EXPECT_EQ(Json::parse(call({"schema", "site"}).out), workflow::site_json_schema());
  EXPECT_THROW(call({"schema", "task"}), CLI::ParseError);
}

}  // namespace
}  // namespace warpsmith::cli
