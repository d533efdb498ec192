// fast_p and pass@k of a run's stages: what counts, and in which denominator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warpsmith/report/fast_p.h"
#include "warpsmith/report/report.h"

namespace warpsmith::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class FastPRows : public ::testing::Test {
 protected:
  FastPRows() {
    for (const char* id : {"add", "gelu", "mul", "never"}) task(id, "train");
    task("held", "heldout_operation");
  }
  void task(const std::string& id, const std::string& split) {
    store::TaskRow row;
    row.id = id;
    row.split = split;
    results_.tasks.push_back(row);
  }
  store::SampleRow& sample(const std::string& task, const std::string& candidate, double speedup,
                           const std::string& verdict = "ok") {
    results_.generated.push_back({"evaluate", "0a1b2c3d", task, "train", candidate, verdict, 0, speedup});
    return results_.generated.back();
  }
  void program(const std::string& id, const std::string& origin) {
    store::CandidateRow row;
    row.id = id;
    row.origin = origin;
    results_.candidates.push_back(row);
  }
  // The stage only measured: none of its jobs drew.
  void measures_again() {
    store::ShardRow shard;
    shard.stage = "evaluate";
    shard.hash8 = "0a1b2c3d";
    shard.job = "measure";
    results_.shards.push_back(shard);
  }
  FastPRow row() const { return fast_p_rows(results_).at(0); }
  store::Results results_;
};

// fast_p at 0, 0.5, 0.8, 1, 1.01, 1.5, 2.
TEST_F(FastPRows, EveryTaskOfTheSetIsInTheDenominator) {
  sample("add", "a", 3);
  sample("add", "b", 0.4);
  sample("gelu", "c", 1);
  sample("gelu", "d", 0, "wrong_output");
  sample("mul", "e", 0, "crash");
  const FastPRow r = row();
  EXPECT_EQ(r.tasks, 4) << "the one without a sample too, and not that of another group";
  EXPECT_EQ(r.judged, 3);
  EXPECT_EQ(r.correct, 2);
  EXPECT_THAT(r.best, ElementsAre(0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25)) << "1x is not over 1x";
  EXPECT_THAT(*r.one_draw, ElementsAre(0.375, 0.25, 0.25, 0.125, 0.125, 0.125, 0.125));
  EXPECT_DOUBLE_EQ(*r.geometric_mean, std::sqrt(3));
  EXPECT_EQ(r.least, 0);
  EXPECT_EQ(r.most, 2);
}

TEST_F(FastPRows, PassAtKIsOverTheTasksWithSoManySamples) {
  for (int i = 0; i < 5; ++i) sample("add", "a" + std::to_string(i), 1, i < 2 ? "ok" : "crash");
  sample("gelu", "b", 1);
  sample("gelu", "c", 0, "unsupported");  // says nothing
  const FastPRow r = row();
  ASSERT_EQ(r.pass.size(), 3u);
  EXPECT_EQ(r.pass[0].tasks, 2);
  EXPECT_DOUBLE_EQ(*r.pass[0].value, (0.4 + 1) / 2);
  EXPECT_EQ(r.pass[1].tasks, 1);
  EXPECT_DOUBLE_EQ(*r.pass[1].value, 1) << "five of five draws hold one of the two";
  EXPECT_EQ(r.pass[2].tasks, 0);
  EXPECT_FALSE(r.pass[2].value);
}

TEST_F(FastPRows, APersonsProgramIsNeverTheModels) {
  sample("add", "a", 3).known = true;
  sample("add", "b", 1.2);
  const FastPRow r = row();
  EXPECT_THAT(r.best, ElementsAre(0.25, 0.25, 0.25, 0.25, 0.25, 0, 0));
  EXPECT_DOUBLE_EQ(*r.pass[0].value, 0.5);
  EXPECT_EQ(r.authors, "model");
}

TEST_F(FastPRows, AModelThatLearnsBetweenRoundsHasNoPassAtK) {
  sample("add", "a", 3);
  sample("add", "b", 3).round = 1;
  EXPECT_THAT(row().pass, IsEmpty());
  EXPECT_TRUE(row().one_draw);
}

// It was asked with the verdict of the one before.
TEST_F(FastPRows, ALaterTurnIsNoDraw) {
  sample("add", "a", 0, "crash");
  sample("add", "mended", 3).turn = 2;
  sample("gelu", "b", 1.2);
  sample("gelu", "faster", 3).turn = 2;
  const FastPRow r = row();
  EXPECT_EQ(r.most, 1);
  EXPECT_EQ(r.correct, 1);
  EXPECT_THAT(r.best, ElementsAre(0.25, 0.25, 0.25, 0.25, 0.25, 0, 0));
  EXPECT_THAT(*r.one_draw, ElementsAre(0.25, 0.25, 0.25, 0.25, 0.25, 0, 0));
  EXPECT_EQ(r.pass[0].tasks, 2);
  EXPECT_DOUBLE_EQ(*r.pass[0].value, 0.5);
  EXPECT_THAT(fast_p_html({r}), HasSubstr("first turn alone"));
}

TEST_F(FastPRows, ProgramsMeasuredAgainAreNoDrawsAndStandByAuthor) {
  measures_again();
  program("mine", "generated");
  program("theirs", "dataset");
  sample("add", "mine", 1.2);
  sample("add", "theirs", 3);
  sample("gelu", "theirs", 3);
  const auto rows = fast_p_rows(results_);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].authors, "model");
  EXPECT_THAT(rows[0].best, ElementsAre(0.25, 0.25, 0.25, 0.25, 0.25, 0, 0));
  EXPECT_EQ(rows[1].authors, "all");
  EXPECT_THAT(rows[1].best, ElementsAre(0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5));
  for (const FastPRow& r : rows) {
    EXPECT_FALSE(r.one_draw);
    EXPECT_THAT(r.pass, IsEmpty());
  }
  const std::string page = fast_p_html(rows);
  EXPECT_THAT(page, HasSubstr("<td>a model</td>"));
  EXPECT_THAT(page, HasSubstr("<td>whoever wrote them</td>"));
}

TEST_F(FastPRows, ACopyIsNotTheModelsWhereItIsMeasuredAgainEither) {
  program("copy", "generated");
  sample("add", "copy", 3).known = true;
  results_.generated.back().stage = "contrastive";
  measures_again();
  sample("add", "copy", 3);
  const auto rows = fast_p_rows(results_);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].stage, "contrastive");
  EXPECT_EQ(rows[0].correct, 0);
  EXPECT_EQ(rows[1].authors, "all");
}

TEST_F(FastPRows, DegenerateTasksCountAndAreTold) {
  sample("add", "a", 3);
  results_.tasks[0].degenerate = "one constant passes";
  const FastPRow r = row();
  EXPECT_EQ(r.tasks, 4);
  EXPECT_EQ(r.degenerate, 1);
  EXPECT_EQ(r.best[0], 0.25);
  EXPECT_THAT(fast_p_html({r}), HasSubstr("All tasks are 1 that a program without any work would pass"));
  results_.tasks[0].degenerate.clear();
  EXPECT_THAT(fast_p_html({row()}), Not(HasSubstr("without any work")));
}

TEST_F(FastPRows, StandInThePageAndInExports) {
  sample("add", "a", 3);
  sample("add", "b", 1);
  const std::string page = html(results_);
  EXPECT_THAT(page,
              HasSubstr("<td>best of them</td><td>25.0 %</td><td>25.0 %</td><td>25.0 %</td><td>25.0 %</td>"));
  EXPECT_THAT(page, HasSubstr("share of <em>all</em> tasks of the set"));
  EXPECT_THAT(page, HasSubstr("id=\"plot-fast-p\""));
  const Json json = Json::parse(report::json(results_)).at("fast_p").at(0);
  EXPECT_EQ(json.at("tasks"), 4);
  EXPECT_EQ(json.at("best").at("1.5"), 0.25);
  EXPECT_EQ(json.at("one_draw").at("1"), 0.125);
  EXPECT_EQ(json.at("curve"), Json::parse("[[0.0, 0.25], [3.0, 0.0]]"));
  EXPECT_EQ(json.at("pass").at("1").at("tasks"), 1);
  EXPECT_FALSE(json.at("pass").contains("5"));
  const std::string lines = csv(results_, "fast_p");
  EXPECT_THAT(lines,
              HasSubstr(",fast_0,fast_0.5,fast_0.8,fast_1,fast_1.01,fast_1.5,fast_2,one_draw_fast_0,"));
  EXPECT_THAT(lines,
              HasSubstr("\nevaluate,0a1b2c3d,train,model,4,0,0,1,1,0,2,0.25,0.25,0.25,0.25,0.25,0.25,0.25,"));
  EXPECT_EQ(html(store::Results{}).find("id=\"fast-p\""), std::string::npos);
}

}  // namespace
}  // namespace warpsmith::report
