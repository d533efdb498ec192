// What stages would take on each type of GPU: learnt from usage.json of earlier runs, nothing made up.
#include "gpu_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"

namespace warpsmith::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GpuTypes : public ::testing::Test {
 protected:
  GpuTypes() {
    site_.name = "lab";
    for (const char* type : {"H100", "L40"}) site_.gpus[type].names = {type};
    site_.prices = {.currency = "EUR", .gpu_hours = {{"H100", 4}, {"L40", 1}}};
    spec_.name = "w";
    add("score", "measure", workflow::MeasureSettings{.candidates_of_run = "/run"});
    spec_.stages[0].device = "H100";
    spec_.stages[0].taken = std::make_shared<const workflow::TakenCandidates>(
        workflow::TakenCandidates{std::vector<Candidate>(100), "d"});
  }
  void add(const std::string& name, const std::string& kind, workflow::StageSettings settings) {
    workflow::StageSpec stage;
    stage.name = stage.base_name = name;
    stage.kind = kind;
    stage.settings = std::move(settings);
    stage.shard_s = 600;
    spec_.stages.push_back(std::move(stage));
  }
  // What a stage of a run took an item, by job and type ("": the job has no GPU).
  void took(const std::string& run, const std::string& stage, const std::string& kind,
            const std::map<std::string, std::map<std::string, double>>& item_s) const {
    const fs::path folder = scratch_ / run / "stages" / stage / "0a1b2c3d";
    make_folders(folder);
    write_file_atomic(scratch_ / run / "run.json", "{}");
    write_file_atomic(scratch_ / run / "state.json", "{}");
    Json jobs = Json::object();
    for (const auto& [job, by_type] : item_s) {
      Json& one = jobs[job];
      one = {{"program", "warpsmith-" + job}, {"jobs", 1}, {"items", 10}, {"by_gpu", Json::object()}};
      double items = 0, wall_s = 0;
      for (const auto& [type, seconds] : by_type) {
        items += 10;
        wall_s += 10 * seconds;
        if (!type.empty()) one["by_gpu"][type] = {{"timed_items", 10}, {"wall_s", 10 * seconds}};
      }
      one["timed_items"] = items;
      one["wall_s"] = wall_s;
    }
    write_file_atomic(folder / "usage.json",
                      Json{{"stage", stage}, {"kind", kind}, {"written", 1}, {"jobs", jobs}}.dump());
  }
  TypeCosts costs(double deadline_s = 0, const workflow::GpuStocks* machine = nullptr) const {
    workflow::WorkflowSpec resolved = spec_;
    const workflow::SiteSpec* site = machine == nullptr ? &site_ : nullptr;
    const workflow::GpuStocks stocks = machine == nullptr ? workflow::GpuStocks{} : *machine;
    workflow::resolve_devices(resolved, site, stocks);
    std::vector<plan::StagePlan> plans(spec_.stages.size());
    if (!resolved.stages[0].blocked.empty()) plans[0].action = plan::Action::kBlocked;
    UsageFinder usages(scratch_ / "w", scratch_.path());
    return type_costs({.of_file = spec_,
                       .spec = resolved,
                       .plans = plans,
                       .site = site,
                       .machine = stocks,
                       .cpus = 8,
                       .deadline_s = deadline_s},
                      usages);
  }

  const Scratch scratch_;
  workflow::SiteSpec site_;
  workflow::WorkflowSpec spec_;
};

TEST_F(GpuTypes, NothingIsSaidOfATypeThatNoRunHasHad) {
  took("old", "score", "measure", {{"compile", {{"", 1}}}, {"measure", {{"H100", 36}}}});
  const TypeCosts found = costs();
  ASSERT_EQ(found.types.size(), 2u);
  EXPECT_EQ(found.types[0].lack, "");
  EXPECT_NEAR(found.types[0].sum.gpu_hours, 1, 1e-9);
  EXPECT_NEAR(found.types[0].sum.money, 4, 1e-9);
  // Six shards of at most 17 candidates side by side, behind a shard that compiles all.
  EXPECT_NEAR(found.types[0].time_s, 100 + 17 * 36, 1e-9);
  EXPECT_EQ(found.types[1].lack, "no earlier run on L40 of score/measure");
  EXPECT_THAT(type_lines(found),
              ElementsAre("score by type of GPU, as earlier runs went; waiting in the queue not counted:",
                          "  H100  at most 11m52s, 1 GPU-hours, 4.00 EUR (learnt from " +
                              (scratch_ / "old").string() + ")",
                          "  L40   no earlier run on L40 of score/measure",
                          "  cheapest: H100 (11m52s, 4.00 EUR); fastest: H100 (11m52s, 4.00 EUR)"));
  const Json json = to_json(found);
  EXPECT_EQ(json.at("cheapest"), "H100");
  EXPECT_EQ(json.at("types").at(0).at("money"), 4.0);
  EXPECT_EQ(json.at("types").at(1),
            (Json{{"type", "L40"}, {"known", false}, {"why", "no earlier run on L40 of score/measure"}}));
}

TEST_F(GpuTypes, TheCheapestThatMeetsTheDeadlineIsNamed) {
  took("old", "score", "measure", {{"compile", {{"", 1}}}, {"measure", {{"H100", 36}, {"L40", 72}}}});
  EXPECT_EQ(costs().cheapest()->type, "L40");
  EXPECT_EQ(costs().fastest()->type, "H100");
  EXPECT_EQ(costs(3600).cheapest()->type, "L40");
  EXPECT_EQ(costs(720).cheapest()->type, "H100");
  EXPECT_EQ(type_lines(costs(720)).back(), "  cheapest within 12m00s: H100 (11m52s, 4.00 EUR)");
  EXPECT_EQ(costs(60).cheapest(), nullptr);
  EXPECT_EQ(type_lines(costs(60)).back(),
            "  no type is expected to end within 1m00s; fastest: H100 (11m52s, 4.00 EUR)");
  EXPECT_EQ(to_json(costs(60)).at("cheapest"), nullptr);
  site_.prices.gpu_hours.erase("L40");
  EXPECT_EQ(costs(3600).cheapest()->type, "H100") << "the other has no price";
  EXPECT_THAT(type_lines(costs())[2], HasSubstr(", no price of L40"));
  site_.prices = {};
  EXPECT_EQ(costs().cheapest(), nullptr);
  EXPECT_EQ(type_lines(costs()).back(), "  fastest: H100 (11m52s)");
  EXPECT_EQ(type_lines(costs(3600)).back(), "  fastest within 1h00m: H100 (11m52s); no price is known");
}

TEST_F(GpuTypes, AGpuThatCostsNothingIsTheCheapest) {
  took("old", "score", "measure", {{"compile", {{"", 1}}}, {"measure", {{"H100", 36}, {"L40", 72}}}});
  site_.prices.gpu_hours["L40"] = 0;
  ASSERT_NE(costs().cheapest(), nullptr);
  EXPECT_EQ(costs().cheapest()->type, "L40");
  EXPECT_THAT(type_lines(costs())[2], HasSubstr("2 GPU-hours, 0.00 EUR (learnt"));
  EXPECT_EQ(to_json(costs()).at("types").at(1).at("money"), 0.0);
  site_.prices.gpu_hours.erase("L40");
  site_.prices.cpu_hours = 0.5;
  EXPECT_EQ(costs().cheapest()->type, "H100") << "a price of the CPUs beside it is none of the GPU";
  EXPECT_TRUE(to_json(costs()).at("types").at(1).at("money").is_null());
}

TEST_F(GpuTypes, TheCpusOfOtherJobsHaveAPriceOfTheirOwn) {
  took("old", "score", "measure", {{"compile", {{"", 36}}}, {"measure", {{"H100", 36}}}});
  site_.prices.cpu_hours = 0.5;
  EXPECT_NEAR(costs().types[0].sum.money, 4 + 0.5, 1e-9) << "an hour of one CPU beside one of the GPU";
}

TEST_F(GpuTypes, AnotherStageOfTheKindWillDoAndAnotherKindWillNot) {
  took("old", "score", "collect", {{"measure", {{"H100", 1}, {"L40", 1}}}});
  EXPECT_NE(costs().types[0].lack, "");
  took("older", "sweep-H100", "measure", {{"compile", {{"", 1}}}, {"measure", {{"H100", 72}}}});
  EXPECT_NEAR(costs().types[0].sum.gpu_hours, 2, 1e-9);
  took("older", "score", "measure", {{"compile", {{"", 1}}}, {"measure", {{"H100", 36}}}});
  EXPECT_NEAR(costs().types[0].sum.gpu_hours, 1, 1e-9) << "of its own name";
}

TEST_F(GpuTypes, TwinsAreNoGpus) {
  took("old", "score", "measure", {{"compile", {{"", 1}}}, {"measure", {{"H100", 36}, {"L40", 9}}}});
  write_file_atomic(scratch_ / "old/site.yaml",
                    "schema: warpsmith.site/1\nname: dev\ngpus: {L40: {twin: true}}\n");
  EXPECT_NE(costs().types[1].lack, "");
  site_.gpus["L40"].twin = true;
  EXPECT_EQ(costs().types.size(), 1u);
}

// `device: auto` on a site of several types: somebody has to choose, and this is what by.
TEST_F(GpuTypes, HelpsWhereAutoLeavesTheChoice) {
  took("old", "score", "measure", {{"compile", {{"", 1}}}, {"measure", {{"H100", 36}, {"L40", 72}}}});
  spec_.stages[0].device = "auto";
  EXPECT_EQ(costs().types.size(), 2u);
  EXPECT_EQ(costs().cheapest()->type, "L40");
}

TEST_F(GpuTypes, InstancesOfASweepCountForTheirOwnType) {
  took("old", "score-L40", "measure", {{"compile", {{"", 1}}}, {"measure", {{"L40", 72}}}});
  spec_.stages.push_back(spec_.stages[0]);
  spec_.stages[0].name = "score-H100";
  spec_.stages[1].name = "score-L40";
  spec_.stages[1].device = "L40";
  const TypeCosts found = costs();
  EXPECT_EQ(found.types[0].lack, "no earlier run on H100 of score-H100/measure");
  EXPECT_NEAR(found.types[1].sum.gpu_hours, 2, 1e-9) << "one of the two stages";
}

TEST_F(GpuTypes, StagesThatNeedOneAnotherRunOneAfterTheOther) {
  took("old", "score", "measure", {{"compile", {{"", 1}}}, {"measure", {{"H100", 36}}}});
  const double alone_s = costs().types[0].time_s;
  spec_.stages.push_back(spec_.stages[0]);
  spec_.stages[1].name = spec_.stages[1].base_name = "again";
  EXPECT_NEAR(costs().types[0].time_s, alone_s, 1e-9);
  spec_.stages[1].needs = {"score"};
  EXPECT_NEAR(costs().types[0].time_s, 2 * alone_s, 1e-9);
}

TEST_F(GpuTypes, ThisMachineHasSoManyGpus) {
  took("old", "score", "measure", {{"compile", {{"", 0.001}}}, {"measure", {{"H100", 36}, {"L40", 36}}}});
  const workflow::GpuStocks two = {{"H100", {.count = 2, .target = "sm_90a", .names = {"NVIDIA H100"}}}};
  const TypeCosts found = costs(0, &two);
  ASSERT_EQ(found.types.size(), 1u);
  EXPECT_GE(found.types[0].time_s, 100 * 36 / 2.0) << "an hour of work on two GPUs";
  EXPECT_LE(found.types[0].time_s, 100 * 36 / 2.0 * 1.3);
  spec_.stages[0].device = "L40";
  EXPECT_EQ(costs(0, &two).types[1].lack, "no device: this machine has no L40, it has 2 H100");
}

TEST_F(GpuTypes, WithoutGpusThereIsNothingToSay) {
  spec_.stages[0].device = "cpu";
  EXPECT_THAT(type_lines(costs()), IsEmpty());
  EXPECT_THAT(type_lines(costs(60)), ElementsAre("--deadline: no stage that is to run uses a GPU"));
}

TEST(Deadline, IsADuration) {
  EXPECT_EQ(deadline_seconds(""), 0);
  EXPECT_EQ(deadline_seconds("2h"), 7200);
  for (const char* text : {"2", "soon", "0s", "-1h"}) {
    try {
      deadline_seconds(text);
      ADD_FAILURE() << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code(), kExitUsage);
      EXPECT_EQ(std::string(e.what()), std::string("--deadline: `") + text + "` is no duration, such as 2h");
    }
  }
}

}  // namespace
}  // namespace warpsmith::cli
