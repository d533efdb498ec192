#include "progress.h"

#include <gtest/gtest.h>

#include <map>

namespace warpsmith::cli {
namespace {

TEST(RateMeter, CountsFromTheFirstSight) {
  RateMeter meter;
  meter.see(100, 40);  // done before we looked: not ours to count
  EXPECT_EQ(meter.per_s(), 0);
  meter.see(110, 60);
  EXPECT_DOUBLE_EQ(meter.per_s(), 2);
  meter.see(120, 100);
  EXPECT_DOUBLE_EQ(meter.per_s(), 3);
}

TEST(RateMeter, BeginsAnewWithAnotherJob) {
  RateMeter meter;
  meter.see(0, 0);
  meter.see(10, 100);
  meter.see(11, 2);
  EXPECT_EQ(meter.per_s(), 0);
  meter.see(21, 12);
  EXPECT_DOUBLE_EQ(meter.per_s(), 1);
}

const Json kStage = {
    {"stage", "contrastive"},
    {"progress",
     {{"round", 2}, {"rounds", 8}, {"best", 3.214}, {"median", 1.1}, {"valid_share", 0.54}, {"loss", 0.5}}},
    {"jobs", {{{"round", 2}, {"job", "measure"}, {"items", 96}, {"done", 36}, {"shards_failed", 0}}}}};

TEST(StageLine, SaysRoundDoneRateTimeLeftAndFigures) {
  EXPECT_EQ(stage_line(kStage, 2.0),
            "contrastive  round 2/8  measure 36/96  2.0/s  30s left  best 3.21x  median 1.10x  valid 54%  "
            "loss 0.500");
}

TEST(StageLine, SaysWhichRoundIsSampledAhead) {
  Json stage = {{"stage", "rl"},
                {"progress", {{"round", 2}, {"rounds", 8}, {"ahead", 3}}},
                {"jobs",
                 {{{"round", 3}, {"job", "generate"}, {"items", 16}, {"done", 4}},
                  {{"round", 2}, {"job", "measure"}, {"items", 96}, {"done", 36}}}}};
  EXPECT_EQ(stage_line(stage, 0), "rl  round 2/8  generate 4/16 of round 3  measure 36/96");
}

TEST(StageLine, NamesWinsAndWhoElseWroteTheBest) {
  const Json stage = {
      {"stage", "sweep"},
      {"progress", {{"best", 2.5}, {"best_author", "dataset"}, {"wins", 0.25}, {"above_1_01", 0.5}}},
      {"jobs", Json::array()}};
  EXPECT_EQ(stage_line(stage, 0),
            "sweep  best 2.50x (dataset)  of the correct: wins 25%, scores above 1.01x 50%");
  for (const auto& [tasks, said] : std::map<int, std::string>{{1, "1 task"}, {17, "17 tasks"}})
    EXPECT_EQ(stage_line({{"stage", "sweep"}, {"progress", {{"host_bound", tasks}}}}, 0),
              "sweep  without " + said + " bound by the host");
}

TEST(StageLine, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ(
      stage_line({{"stage", "collect"}, {"progress", {{"round", 0}, {"rounds", 1}}}, {"jobs", Json::array()}},
                 0),
      "collect");
}

TEST(StageLine, TellsWhatARoundDidNotMeasure) {
  const Json skip = {{"guessed", 40}, {"skipped", 18}, {"blind", 2}, {"rank_correlation", 0.456}};
  EXPECT_EQ(stage_line({{"stage", "rl"}, {"progress", {{"skip", skip}}}}, 0),
            "rl  skipped 18 of 40 compiled, 2 measured blindly (rank correlation 0.46)");
  EXPECT_EQ(stage_line({{"stage", "rl"}, {"progress", {{"skip", {{"guessed", 0}, {"note", "few"}}}}}}, 0),
            "rl  few");
}

TEST(StateTable, NamesStatesPhasesAndFailures) {
  CommandContext context;
  const Json state = {
      {"state", "failed"},
      {"phase_s", {{"measure", 61.0}}},
      {"stages",
       {{{"stage", "collect"}, {"state", "finished"}, {"ran", false}, {"action", "up to date"}},
        {{"stage", "sft"},
         {"state", "failed"},
         {"ran", true},
         {"failure", "sft 0/train/0 ended by crash"},
         {"seconds", 3.0}},
        {{"stage", "evaluate"}, {"state", "waiting"}}}}};
  EXPECT_EQ(state_table(context, state),
            "  collect   up to date\n"
            "  sft       failed        3.0s  sft 0/train/0 ended by crash\n"
            "  evaluate  not run\n"
            "  time by phase, of all shards:  measure 1m01s\n");
}

TEST(StateTable, SaysGpuHoursUsedAndAsked) {
  CommandContext context;
  Json state = {
      {"state", "running"}, {"stages", Json::array()}, {"gpu_hours", 1.25}, {"gpu_hours_asked", 8.0}};
  EXPECT_EQ(state_table(context, state),
            "  GPU-hours: 1.25 used, 8 asked by the shards in flight, at their time limits\n");
  state["gpu_hours_asked"] = 0.0;
  EXPECT_EQ(state_table(context, state), "  GPU-hours: 1.25 used\n");
  state["gpu_hours"] = 0.0;
  EXPECT_EQ(state_table(context, state), "");
}

}  // namespace
}  // namespace warpsmith::cli
