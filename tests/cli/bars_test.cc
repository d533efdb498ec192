// A run on a terminal: bars, and lines that fit it.
#include "bars.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "table.h"
#include "warpsmith/base/text.h"

namespace warpsmith::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Bar, IsFilledByEighthsOfAPlace) {
  EXPECT_EQ(bar(0, 10, 4, true), "····");
  EXPECT_EQ(bar(5, 10, 4, true), "██··");
  EXPECT_EQ(bar(17, 32, 4, true), "██▏·");
  EXPECT_EQ(bar(23, 32, 4, true), "██▉·");
  EXPECT_EQ(bar(10, 10, 4, true), "████");
  EXPECT_EQ(bar(1, 100000, 4, true), "▏···") << "whatever is done shows";
  EXPECT_EQ(bar(99999, 100000, 4, true), "███▉") << "only all is full";
  EXPECT_EQ(bar(11, 10, 4, true), "████");
}

TEST(Bar, IsAsciiWhereTheLocaleIsNotUtf8) {
  EXPECT_EQ(bar(0, 10, 5, false), ".....");
  EXPECT_EQ(bar(5, 10, 5, false), "##...");
  EXPECT_EQ(bar(1, 1000, 5, false), "#....");
  EXPECT_EQ(bar(999, 1000, 5, false), "####.");
  EXPECT_EQ(bar(10, 10, 5, false), "#####");
}

TEST(Bar, SaysThatTheTotalIsNotKnown) {
  EXPECT_EQ(bar(7, 0, 3, false), "---");
  EXPECT_EQ(bar(7, 0, 3, true), "───");
}

TEST(Bar, MayBeNarrow) {
  EXPECT_EQ(bar(1, 2, 0, true), "");
  EXPECT_EQ(bar(1, 2, 1, true), "▌");
  EXPECT_EQ(bar(1, 2, 1, false), ".");
  for (std::size_t width = 1; width < 40; ++width)
    for (std::uint64_t done = 0; done <= 97; ++done)
      for (const bool unicode : {false, true}) ASSERT_EQ(characters(bar(done, 97, width, unicode)), width);
}

TEST(Shortened, MarksWhatIsCut) {
  EXPECT_EQ(shortened("größer", 6, true), "größer");
  EXPECT_EQ(shortened("größer", 5, true), "größ…");
  EXPECT_EQ(shortened("größer", 5, false), "größ~");
  EXPECT_EQ(shortened("größer", 1, true), "…");
  EXPECT_EQ(shortened("größer", 0, true), "");
}

const Json kRunningStage = {
    {"stage", "contrastive"},
    {"state", "running"},
    {"progress", {{"round", 2}, {"rounds", 8}, {"best", 3.214}, {"valid_share", 0.54}, {"loss", 0.5}}},
    {"jobs", {{{"round", 2}, {"job", "measure"}, {"items", 96}, {"done", 36}, {"shards_failed", 0}}}}};

std::string line(std::size_t columns, bool unicode = false) {
  const Screen screen{.columns = columns, .rows = 24, .unicode = unicode};
  return running_line({}, screen, kRunningStage, 2.0, name_width(Json::array({kRunningStage}), screen));
}

TEST(RunningLine, LeavesOutWhatDoesNotFit) {
  EXPECT_EQ(
      line(120),
      "contrastive  #######.............  measure 36/96  2.0/s  30s left  round 2/8  valid 54%  best 3.21x  "
      "loss 0.500");
  EXPECT_EQ(line(80), "contrastive  ####.........  measure 36/96  30s left  round 2/8  valid 54%");
  EXPECT_EQ(line(60), "contrastive  ###.......  measure 36/96  30s left  round 2/8");
  EXPECT_EQ(line(40), "contrasti~  ##....  measure 36/96");
  EXPECT_EQ(line(40, true), "contrasti…  ██▎···  measure 36/96");
  for (std::size_t columns = 20; columns < 200; ++columns)
    ASSERT_LT(characters(line(columns, true)), columns) << "the last place would break the line";
}

Json state_of(int finished, int waiting) {
  Json stages = Json::array();
  for (int i = 0; i < finished; ++i)
    stages.push_back({{"stage", "done" + std::to_string(i)},
                      {"state", "finished"},
                      {"ran", i > 0},
                      {"action", "up to date"},
                      {"seconds", i > 0 ? 61.0 : 0.0},
                      {"progress", {{"valid_share", 0.5}}}});
  stages.push_back(kRunningStage);
  stages.push_back(
      {{"stage", "sweep"}, {"state", "failed"}, {"ran", true}, {"failure", "sweep 0/measure/0 crashed"}});
  for (int i = 0; i < waiting; ++i)
    stages.push_back({{"stage", "w" + std::to_string(i)}, {"state", "waiting"}});
  return {{"state", "running"}, {"stages", std::move(stages)}, {"gpu_hours", 1.25}, {"gpu_hours_asked", 0.0}};
}

TEST(WatchText, HasALineAStageAndFitsTheScreen) {
  const Screen screen{.columns = 80, .rows = 24, .unicode = false};
  EXPECT_EQ(watch_text({}, screen, "results/r: running", state_of(2, 3), {{"contrastive", 2.0}}),
            "results/r: running\n"
            "done0        up to date  valid 50%\n"
            "done1        finished    1m01s  valid 50%\n"
            "contrastive  ####.........  measure 36/96  30s left  round 2/8  valid 54%\n"
            "sweep        failed      sweep 0/measure/0 crashed\n"
            "3 waiting: w0, w1, w2\n"
            "GPU-hours: 1.25 used\n");
  for (const std::size_t columns : {20, 40, 80, 132})
    for (const std::size_t rows : {4, 10, 24}) {
      const std::string text =
          watch_text({}, {.columns = columns, .rows = rows, .unicode = true},
                     "results/a-run-with-a-long-name: running, process 12345", state_of(30, 200), {});
      const std::vector<std::string> lines = split_lines(text);
      EXPECT_LT(lines.size(), rows) << text;
      for (const std::string& one : lines) EXPECT_LT(characters(one), columns) << one;
      if (rows < 24) continue;
      EXPECT_THAT(text, HasSubstr("30 stages fin"));
      EXPECT_THAT(text, HasSubstr("sweep"));
    }
}

TEST(WatchText, IsColouredWhereColoursAreOn) {
  CommandContext context;
  const Screen screen{.columns = 80, .rows = 24, .unicode = false};
  EXPECT_THAT(watch_text(context, screen, "r", state_of(1, 0), {}), Not(HasSubstr("\x1b")));
  context.colour = true;
  EXPECT_THAT(watch_text(context, screen, "r", state_of(1, 0), {}),
              HasSubstr(paint(context, "green", bar(36, 96, 13, false))));
}

}  // namespace
}  // namespace warpsmith::cli
