// Aligned tables, and what `plan` makes of them.
#include "plan_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "print.h"
#include "table.h"

namespace warpsmith::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Table, AlignsByWhatIsSeen) {
  Table table({{"NAME"}, {"N", true}, {"EMPTY"}, {"REST"}}, 2);
  table.add({"größe", "7", "", "a → b"});
  table.add({{"x", "red"}, "1234"}, "    note\n");
  EXPECT_EQ(table.text({}),
            "  NAME      N  REST\n"
            "  größe     7  a → b\n"
            "  x      1234\n"
            "    note\n");
  CommandContext coloured;
  coloured.colour = true;
  EXPECT_THAT(table.text(coloured), HasSubstr("  " + paint(coloured, "red", "x") + "      1234\n"))
      << "a colour takes no place";
  table.add({"a\x1b[2Jb\nc"});
  EXPECT_THAT(table.text({}), HasSubstr("  a\\u001b[2Jb c\n"));
}

TEST(Table, LeavesOutWhatItCanSpare) {
  Table table({{"STAGE"}, {.head = "KIND", .spare = 1}, {.head = "NEEDS", .spare = 2}});
  table.add({"evaluate", "measure", "contrastive"});
  EXPECT_EQ(table.text({}, 30), "STAGE     KIND     NEEDS\nevaluate  measure  contrastive\n");
  EXPECT_EQ(table.text({}, 29), "STAGE     KIND\nevaluate  measure\n");
  EXPECT_EQ(table.text({}, 10), "STAGE\nevaluate\n");
  EXPECT_EQ(table.text({}, 3), "STAGE\nevaluate\n") << "nothing is cut";
}

TEST(Wrapped, BreaksBetweenWords) {
  EXPECT_EQ(wrapped({"one", "two", "three"}, ", ", 2, 11), "  one, two,\n  three\n");
  EXPECT_EQ(wrapped({"longer-than-that", "x"}, ", ", 0, 5), "longer-than-that,\nx\n");
  EXPECT_EQ(wrapped({}, ", ", 2, 11), "");
}

class PlanText : public testing::Test {
 protected:
  void add(const std::string& name, const std::string& base, plan::Action action, const std::string& reason,
           std::vector<plan::Change> changes = {}) {
    workflow::StageSpec stage;
    stage.name = name;
    stage.base_name = base;
    stage.kind = "command";
    stage.device = "cpu";
    stage.settings = workflow::CommandSettings{.argv = {"/bin/true"}, .items = "tasks"};
    for (int i = 0; i < 1200; ++i) stage.dataset.train.push_back("t" + std::to_string(i));
    if (!spec_.stages.empty()) stage.needs = {spec_.stages.back().name};
    spec_.stages.push_back(std::move(stage));
    plan::StagePlan p;
    p.stage = name;
    p.action = action;
    p.reason = reason;
    p.changes = std::move(changes);
    plans_.push_back(std::move(p));
    cost_.stages.emplace_back();
  }

  std::string text(std::size_t width = 110) {
    return plan_text({.spec = spec_, .plans = plans_, .cost = cost_, .types = types_, .gpus = {}}, {}, width);
  }

  workflow::WorkflowSpec spec_;
  std::vector<plan::StagePlan> plans_;
  PlanCost cost_;
  TypeCosts types_;
};

TEST_F(PlanText, HasARowAStageAndBelowItTheReasons) {
  add("collect", "collect", plan::Action::kUpToDate, "up to date");
  add("sft", "sft", plan::Action::kRun, "prompt.exemplars: 2 -> 3", {{"prompt.exemplars", "2", "3"}});
  add("rl", "rl", plan::Action::kDepends, "needs sft, which will run");
  cost_.stages[1] = {
      .gpu_hours = 12, .cpu_hours = 3.5, .money = 30, .priced = true, .source = "r/run/stages/sft/0a"};
  cost_.stages[2] = {.cpu_hours = 0.5, .at_most = true, .unknown = {"train"}, .source = "r/run/stages/rl/0b"};
  cost_.all = {.gpu_hours = 12, .cpu_hours = 4, .currency = "EUR"};
  const std::string said = text();
  EXPECT_THAT(said, HasSubstr("STAGE    KIND     DEVICE  ACTION      ROUNDS  JOBS  SHARDS  ITEMS  GPU-HOURS"
                              "  CPU-HOURS    EUR  NEEDS\n"));
  EXPECT_THAT(
      said, testing::ContainsRegex("\ncollect  command  cpu     up to date       1     1 +[0-9]+   1200\n"));
  EXPECT_THAT(said,
              testing::ContainsRegex("\nsft .* run, stale .* 1200         12        3.5  30.00  collect\n"));
  EXPECT_THAT(said, testing::ContainsRegex("\nrl .* may run .*1200                  0.5[+]         sft\n"));
  EXPECT_THAT(said, HasSubstr("\nsft: stale: prompt.exemplars: 2 -> 3\n"));
  EXPECT_THAT(said, HasSubstr("\nrl: may run: needs sft, which will run\n"));
  EXPECT_THAT(said, HasSubstr("\nsft: cost learnt from r/run\n"));
  EXPECT_THAT(said, HasSubstr("\nrl: cost learnt from r/run without train, not known yet\n"));
  EXPECT_THAT(said, HasSubstr("\n2 of 3 stages to run: 2 jobs, "));
  EXPECT_THAT(said, HasSubstr(" or so, about 12 GPU-hours, 4 CPU-hours\n"));
  EXPECT_THAT(said, Not(HasSubstr("collect: "))) << "its row says it";
}

TEST_F(PlanText, SaysEqualNotesOnceWithAllNames) {
  const std::string lack = "no device: this machine has no H100; `--site` names a cluster that has one";
  add("sft", "sft", plan::Action::kBlocked, lack);
  for (const char* type : {"H100", "L40", "H20"})
    add(std::string("sweep-") + type, "sweep", plan::Action::kBlocked, lack);
  add("rest", "rest", plan::Action::kUpToDate, "up to date");
  EXPECT_THAT(text(), HasSubstr("\nsft, sweep-*: cannot run: " + lack + "\n"));
  EXPECT_THAT(text(), HasSubstr("\n4 of 5 stages cannot run\n"));
  EXPECT_THAT(text(60), HasSubstr("\ncannot run: no device: this machine has no H100; `--site`\n"
                                  "names a cluster that has one:\n    sft, sweep-*\n"));
  spec_.stages.pop_back();
  plans_.pop_back();
  EXPECT_THAT(text(), HasSubstr("\nall stages: cannot run: " + lack + "\n"));
  EXPECT_THAT(text(), Not(HasSubstr("CPU-HOURS"))) << "no cost is known";
}

TEST_F(PlanText, NarrowTerminalsSpareNeedsAndKinds) {
  add("collect", "collect", plan::Action::kRun, "never run");
  add("sft", "sft", plan::Action::kRun, "never run");
  EXPECT_THAT(text(80), HasSubstr("NEEDS\n"));
  EXPECT_THAT(text(65),
              testing::StartsWith("STAGE    KIND     DEVICE  ACTION    ROUNDS  JOBS  SHARDS  ITEMS\n"));
  EXPECT_THAT(text(60), testing::StartsWith("STAGE    DEVICE  ACTION    ROUNDS  JOBS  SHARDS  ITEMS\n"));
}

}  // namespace
}  // namespace warpsmith::cli
