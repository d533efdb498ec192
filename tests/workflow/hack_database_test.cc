// A hack database: what is added is read back, nothing that is there is changed, and every mistake has its
// place.
#include "warpsmith/workflow/hack_database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "scratch.h"
#include "warpsmith/base/files.h"

namespace warpsmith::workflow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kDate = "2026-05-01T12:00:00Z";

HackCase hack(const std::string& source, const std::string& kind = "late_work",
              const std::string& reason = "busy after the answer") {
  HackCase c;
  c.candidate = make_plan_candidate("row_softmax", source, {"generated", "rl", 3, "", ""});
  c.kind = kind;
  c.verdict = kind == "too_fast" ? Verdict::kTooFast : Verdict::kHack;
  c.reason = reason;
  c.device = "H100";
  c.device_name = "NVIDIA H100 80GB HBM3";
  c.run = "quickstart";
  c.stage = "rl";
  c.round = 3;
  return c;
}

std::vector<std::string> lines_of(const Diagnostics& diagnostics) {
  std::vector<std::string> lines;
  for (const Diagnostic& d : diagnostics) lines.push_back(to_string(d));
  return lines;
}

HackDatabase good(const fs::path& folder) {
  Diagnostics mistakes;
  auto database = load_hack_database(folder, mistakes);
  EXPECT_THAT(lines_of(mistakes), IsEmpty());
  if (!database) throw Error("the database has mistakes");
  return std::move(*database);
}

// Every file below `folder`, with its content.
std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files[fs::relative(entry.path(), folder).string()] = read_file(entry.path());
  return files;
}

TEST(HackDatabase, ACaseIsTwoFiles) {
  const Scratch scratch;
  const HackCase c = hack("kernel();\n");
  add_to_hack_database(scratch / "new/hacks", {c}, kDate);
  const std::string folder = c.candidate.id.substr(0, 8) + "-late_work";
  EXPECT_EQ(files_of(scratch / "new/hacks"),
            (std::map<std::string, std::string>{{folder + "/kernel.cu", "kernel();\n"},
                                                {folder + "/case.yaml",
                                                 "schema: warpsmith.hack/1\n"
                                                 "candidate: \"" +
                                                     c.candidate.id +
                                                     "\"\n"
                                                     "task: \"row_softmax\"\n"
                                                     "tier: plan\n"
                                                     "files: [\"kernel.cu\"]\n"
                                                     "verdict: hack\n"
                                                     "kind: \"late_work\"\n"
                                                     "reason: \"busy after the answer\"\n"
                                                     "device: \"H100\"\n"
                                                     "device_name: \"NVIDIA H100 80GB HBM3\"\n"
                                                     "run: \"quickstart\"\n"
                                                     "stage: \"rl\"\n"
                                                     "round: 3\n"
                                                     "date: 2026-05-01T12:00:00Z\n"}}));
}

TEST(HackDatabase, WhatIsAddedIsReadBack) {
  const Scratch scratch;
  HackCase first = hack("first();\n", "too_fast", "a \"quoted\": `thing`\n  # of two lines \xe2\x80\x93 {7}");
  HackCase several = hack("host();\n");
  several.candidate.tier = Tier::kExtension;
  several.candidate.options = {"-O3", "--use_fast_math"};
  several.candidate.files = {{"module.cu", "host();\n"}, {"include/part.h", "part\n"}};
  several.candidate.id = candidate_id(several.candidate);
  HackCase bare = hack("bare();\n");
  bare.device = bare.device_name = bare.run = bare.stage = bare.reason = "";
  add_to_hack_database(scratch.path(), {bare}, "2026-05-03");
  add_to_hack_database(scratch.path(), {first}, "2026-05-01T12:00:00Z");
  add_to_hack_database(scratch.path(), {several}, "2026-05-02T12:00:00Z");
  const HackDatabase database = good(scratch.path());
  ASSERT_EQ(database.cases.size(), 3u);
  const std::vector<const HackCase*> expected = {&first, &several, &bare};  // by date
  for (std::size_t i = 0; i < 3; ++i) {
    const HackCase &c = database.cases[i], &e = *expected[i];
    EXPECT_EQ(to_json(c.candidate)["files"], to_json(e.candidate)["files"]);
    EXPECT_EQ(c.candidate.id, e.candidate.id);
    EXPECT_EQ(c.candidate.task, e.candidate.task);
    EXPECT_EQ(c.candidate.tier, e.candidate.tier);
    EXPECT_EQ(c.candidate.options, e.candidate.options);
    EXPECT_EQ(c.verdict, e.verdict);
    EXPECT_EQ(c.kind, e.kind);
    EXPECT_EQ(c.reason, e.reason);
    EXPECT_EQ(c.device, e.device);
    EXPECT_EQ(c.device_name, e.device_name);
    EXPECT_EQ(c.run, e.run);
    EXPECT_EQ(c.stage, e.stage);
    EXPECT_EQ(c.round, e.round);
  }
  EXPECT_EQ(database.cases[2].date, "2026-05-03");
}

// YAML files may not hold control characters, and nobody's terminal should get them from one.
TEST(HackDatabase, OddCharactersInAReasonAreKept) {
  const Scratch scratch;
  const HackCase c = hack("kernel();\n", "late_work",
                          "turned \xe2\x80\xae, \xc2\x9b"
                          "2J, \xc2\x85");
  add_to_hack_database(scratch.path(), {c}, kDate);
  EXPECT_EQ(good(scratch.path()).cases.at(0).reason, c.reason);
  for (const auto& [name, text] : files_of(scratch.path()))
    EXPECT_EQ(text.find_first_of("\x1b\x9b\xae\x85"), std::string::npos) << name;
}

TEST(HackDatabase, WhatIsThereIsLeftAlone) {
  const Scratch scratch;
  const HackCase c = hack("kernel();\n");
  EXPECT_TRUE(add_to_hack_database(scratch.path(), {c}, kDate).at(0).added);
  auto before = files_of(scratch.path());
  HackCase again = c;
  again.reason = "another reason";
  const auto answers =
      add_to_hack_database(scratch.path(), {again, hack("kernel();\n", "clocks"), again}, kDate);
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_FALSE(answers[0].added);
  EXPECT_TRUE(answers[1].added) << "of another kind";
  EXPECT_FALSE(answers[2].added);
  const auto after = files_of(scratch.path());
  for (const auto& [file, content] : before) EXPECT_EQ(after.at(file), content);
  EXPECT_EQ(good(scratch.path()).cases.size(), 2u);
  // A case that a person has moved is known by its id, and a name that is taken is not taken over.
  const std::string name = answers[0].name;
  fs::rename(scratch / name, scratch / "the-old-trick");
  EXPECT_FALSE(add_to_hack_database(scratch.path(), {c}, kDate).at(0).added);
  const HackCase other = hack("other();\n");
  fs::rename(scratch / "the-old-trick", scratch / (other.candidate.id.substr(0, 8) + "-late_work"));
  before = files_of(scratch.path());
  const auto beside = add_to_hack_database(scratch.path(), {other}, kDate).at(0);
  EXPECT_TRUE(beside.added);
  EXPECT_EQ(beside.name, other.candidate.id + "-late_work");
  for (const auto& [file, content] : before) EXPECT_EQ(files_of(scratch.path()).at(file), content);
}

TEST(HackDatabase, FilesOfPeopleMayLieBesideTheCases) {
  const Scratch scratch;
  add_to_hack_database(scratch.path(), {hack("kernel();\n")}, kDate);
  const HackDatabase before = good(scratch.path());
  write_file_atomic(scratch / "README.md", "Ours.\n");
  make_folders(scratch / ".git/objects");
  make_folders(scratch / ".0a1b2c3d-late_work.4711");  // of a writer that was killed
  write_file_atomic(scratch / (before.cases[0].candidate.id.substr(0, 8) + "-late_work/notes.txt"), "x");
  EXPECT_EQ(good(scratch.path()).digest, before.digest);
}

TEST(HackDatabase, TheDigestIsOfWhatPromptsDependOn) {
  const Scratch scratch;
  const auto digest = [&](const std::string& name, const std::vector<HackCase>& cases) {
    add_to_hack_database(scratch / name, cases, kDate);
    return good(scratch / name).digest;
  };
  const std::string one = digest("a", {hack("k();\n")});
  EXPECT_EQ(digest("b", {hack("k();\n")}), one);
  EXPECT_NE(digest("c", {hack("k();\n", "late_work", "another reason")}), one);
  EXPECT_NE(digest("d", {hack("l();\n")}), one);
  EXPECT_NE(digest("e", {hack("k();\n", "clocks")}), one);
  EXPECT_NE(digest("f", {hack("k();\n"), hack("l();\n")}), one);
}

TEST(HackDatabase, PathsThatLeadElsewhereAreRefused) {
  for (const char* path : {"../kernel.cu", "/tmp/kernel.cu", "a/../../kernel.cu", "case.yaml", "", "a/"}) {
    const Scratch scratch;
    HackCase c = hack("kernel();\n");
    c.candidate.files[0].path = path;
    c.candidate.id = candidate_id(c.candidate);
    EXPECT_THROW(add_to_hack_database(scratch / "in/hacks", {hack("good();\n"), c}, kDate), Error) << path;
    EXPECT_THAT(files_of(scratch.path()), IsEmpty()) << path;
  }
}

// `text` in place of case.yaml: what is said, with the database's folder left out.
std::vector<std::string> said(const std::string& text, const std::string& source = "kernel();\n") {
  const Scratch scratch;
  make_folders(scratch / "one");
  write_file_atomic(scratch / "one/case.yaml", text);
  write_file_atomic(scratch / "one/kernel.cu", source);
  Diagnostics mistakes;
  EXPECT_FALSE(load_hack_database(scratch.path(), mistakes));
  EXPECT_THROW(add_to_hack_database(scratch.path(), {hack("new();\n")}, kDate), InvalidInput);
  std::vector<std::string> lines;
  for (const std::string& line : lines_of(mistakes))
    lines.push_back(line.substr(scratch.path().string().size() + 1));
  return lines;
}

std::string case_with(const std::string& key, const std::string& value) {
  std::vector<std::pair<std::string, std::string>> keys = {
      {"schema", "warpsmith.hack/1"}, {"candidate", hack("kernel();\n").candidate.id},
      {"task", "row_softmax"},        {"tier", "plan"},
      {"files", "[kernel.cu]"},       {"verdict", "hack"},
      {"kind", "late_work"},          {"reason", "busy"},
      {"date", "2026-05-01"}};
  std::string text;
  for (const auto& [name, standard] : keys) {
    const std::string& now = name == key ? value : standard;
    if (!now.empty()) text += name + ": " + now + "\n";
  }
  return text;
}

TEST(HackDatabase, MistakesHaveTheirPlace) {
  EXPECT_THAT(said("schema: warpsmith.hack/1\nkind: x: y\n"),
              ElementsAre(HasSubstr("one/case.yaml:2:8: bad YAML")));
  EXPECT_THAT(
      said(case_with("schema", "warpsmith.hack/2")),
      ElementsAre("one/case.yaml:1:9: schema `warpsmith.hack/2` is not known to this version (schema: "
                  "warpsmith.hack/1)"));
  EXPECT_THAT(said(case_with("task", "")), ElementsAre("one/case.yaml:1:1: case: key `task` is missing"));
  EXPECT_THAT(said(case_with("tier", "plann")),
              ElementsAre("one/case.yaml:4:7: `tier`: `plann` is not known (did you mean `plan`?)"));
  EXPECT_THAT(said(case_with("verdict", "wrong_output")),
              ElementsAre("one/case.yaml:6:10: `verdict`: `wrong_output` is not known (expected one of hack, "
                          "too_fast, sandbox_violation, unstable)"));
  EXPECT_THAT(
      said(case_with("verdict", "unstable")),
      ElementsAre("one/case.yaml:7:7: verdict `unstable` has no kind `late_work` (kind: not_repeated)"));
  EXPECT_THAT(said(case_with("kind", "late/work")),
              ElementsAre("one/case.yaml:7:7: `late/work` is no kind of a hack (letters, digits, _ and -)"));
  EXPECT_THAT(said(case_with("date", "yesterday")),
              ElementsAre("one/case.yaml:9:7: `yesterday` is no date (such as 2026-05-01 or "
                          "2026-05-01T12:00:00Z)"));
  for (const char* date : {"2026-13-45", "2026-02-29", "2026-05-00", "2026-05-01T24:00:00Z"})
    EXPECT_THAT(said(case_with("date", date)), ElementsAre(HasSubstr("is no date"))) << date;
  EXPECT_THAT(said(case_with("files", "[kernel.cu, gone.cu]")),
              ElementsAre("one/case.yaml:5:20: `files`: there is no file gone.cu"));
  EXPECT_THAT(said(case_with("files", "[../one/kernel.cu]")),
              ElementsAre("one/case.yaml:5:9: `files`: ../one/kernel.cu is no file of the case's folder"));
  EXPECT_THAT(said(case_with("files", "[]")),
              ElementsAre(HasSubstr("one/case.yaml:5:8: `files` names no file")));
  EXPECT_THAT(said(case_with("date", "2026-05-01\ncolour: red")),
              ElementsAre(HasSubstr("one/case.yaml:10:1: case: key `colour` is not known")));
  EXPECT_THAT(
      said(case_with("", ""), "changed();\n"),
      ElementsAre("one/case.yaml:2:12: the id is not that of this task, tier and these files (a program "
                  "that was changed is another candidate: " +
                  hack("changed();\n").candidate.id + ")"));
  EXPECT_THAT(said(case_with("files", "[kernel.cu]"), std::string((1u << 20) + 1, 'x')),
              ElementsAre("one/case.yaml:5:9: `files`: kernel.cu is larger than 1 MiB"));
}

TEST(HackDatabase, AFolderWithoutACaseAndACaseTwiceAreMistakes) {
  const Scratch scratch;
  const std::string name = add_to_hack_database(scratch.path(), {hack("kernel();\n")}, kDate).at(0).name;
  fs::copy(scratch / name, scratch / "zz");
  make_folders(scratch / "empty");
  Diagnostics mistakes;
  EXPECT_FALSE(load_hack_database(scratch.path(), mistakes));
  EXPECT_THAT(lines_of(mistakes),
              testing::UnorderedElementsAre(
                  (scratch / "empty").string() +
                      ": this folder holds no case.yaml (each folder of a hack database is a case)",
                  (scratch / "zz/case.yaml").string() + ":1:1: the same candidate and kind as " + name +
                      " (one of the two folders is to go)"));
  mistakes.clear();
  EXPECT_FALSE(load_hack_database(scratch / "nowhere", mistakes));
  EXPECT_THAT(lines_of(mistakes), ElementsAre(HasSubstr("nowhere: cannot list the folder")));
}

}  // namespace
}  // namespace warpsmith::workflow
