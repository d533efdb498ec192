// Known hacks that are quoted enter a stage's hash; those that are not leave it as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/plan/plan.h"
#include "warpsmith/workflow/hack_database.h"
#include "warpsmith/workflow/load.h"

namespace warpsmith::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::MatchesRegex;

class HacksTest : public ::testing::Test {
 protected:
  HacksTest() {
    make_folders(scratch_ / "tasks/add");
    write_file_atomic(scratch_ / "tasks/add/task.yaml", "");
    add("first();\n", "hacks");
    add("first();\n", "copy");
  }

  void add(const std::string& source, const std::string& database) const {
    HackCase hack;
    hack.candidate = make_plan_candidate("add", source, {});
    hack.kind = "clocks";
    workflow::add_to_hack_database(scratch_ / database, {hack}, "2026-05-01");
  }

  // The inputs of a contrastive stage with these settings.
  Json inputs(const std::string& settings, bool check_files = true) const {
    const auto loaded = workflow::load_workflow_text(
        "schema: warpsmith.workflow/1\nname: w\ndataset: {folder: tasks, train: [add]}\nstages:\n"
        "  - {name: c, kind: collect}\n  - {name: s, kind: sft, needs: c}\n"
        "  - {name: rl, kind: contrastive, needs: s" +
            settings + "}\n",
        scratch_ / "w.yaml", {.overrides = {}, .seed = {}, .base_folder = {}, .check_files = check_files});
    if (!loaded.spec) throw InvalidInput(loaded.mistakes);
    const workflow::StageSpec& stage = loaded.spec->stages[2];
    return stage_inputs(stage, digest_dataset(stage.dataset.folder), {{"s", "output"}});
  }
  static std::vector<std::string> changes(const Json& before, const Json& after) {
    std::vector<std::string> lines;
    for (const Change& change : differences(before, after)) lines.push_back(to_string(change));
    return lines;
  }

  const Scratch scratch_;
};

TEST_F(HacksTest, OnlyWhatIsQuotedCounts) {
  const Json plain = inputs("");
  EXPECT_FALSE(plain.contains("hacks"));
  EXPECT_FALSE(plain.at("params").contains("quote_hacks")) << "hashes of older workflows stay what they were";
  EXPECT_EQ(inputs(", hacks: hacks"), plain);
  EXPECT_EQ(inputs(", hacks: hacks, quote_hacks: 0"), plain);
  EXPECT_NE(inputs(", quote_hacks: 2"), plain);
  EXPECT_EQ(inputs(", hacks: hacks, quote_hacks: 2"), inputs(", hacks: copy/, quote_hacks: 2"))
      << "what is in the folder counts, and not its name";
}

TEST_F(HacksTest, AChangedDatabaseMakesTheStageStaleAndSaysWhy) {
  const Json before = inputs(", hacks: hacks, quote_hacks: 2");
  EXPECT_EQ(inputs(", hacks: hacks, quote_hacks: 2"), before);
  EXPECT_THAT(changes(before, inputs(", hacks: hacks, quote_hacks: 3")), ElementsAre("quote_hacks: 2 -> 3"));
  add("second();\n", "hacks");
  const Json after = inputs(", hacks: hacks, quote_hacks: 2");
  EXPECT_THAT(changes(before, after), ElementsAre(MatchesRegex("known hacks: [0-9a-f]{8} -> [0-9a-f]{8}")));
  EXPECT_NE(hash_inputs(before), hash_inputs(after));
  EXPECT_THAT(changes(before, inputs(", quote_hacks: 2")),
              ElementsAre(MatchesRegex("known hacks: [0-9a-f]{8} -> \\(nothing\\)")));
}

TEST_F(HacksTest, ThoseThatNobodyHasReadAreAnError) {
  EXPECT_THROW(inputs(", hacks: hacks, quote_hacks: 2", false), Error);
}

}  // namespace
}  // namespace warpsmith::plan
