#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/report/baselines.h"
#include "warpsmith/report/cost.h"
#include "warpsmith/report/report.h"
#include "warpsmith/report/summary.h"
#include "warpsmith/store/tables.h"

namespace warpsmith::report {
namespace {

store::SampleRow sample(const std::string& stage, const std::string& group, const std::string& candidate,
                        const std::string& verdict, double speedup, std::int64_t round = 0) {
  return {stage, "0a1b2c3d", "row_softmax", group, candidate, verdict, round, speedup};
}

store::Results example() {
  store::Results r;
  r.run = "example <run>";
  r.host = "here";
  r.version = "0.1.0";
  r.workflow = "schema: warpsmith.workflow/1\n";
  r.tasks.push_back({"row_softmax", "Softmax over rows", "train", "softmax",
                     "def forward(x: Tensor) -> Tensor:\n  return x.softmax(1)\n", "", "collect", "0c0c0c0c",
                     1});
  r.candidates.push_back({"aaaa", "row_softmax", "plan", "generated", "contrastive", "0a1b2c3d", "", "",
                          "__global__ void k() {} // </script>", 1});
  store::MeasurementRow m;
  m.stage = "contrastive";
  m.hash8 = "0a1b2c3d";
  m.value.candidate = "aaaa";
  m.value.task = "row_softmax";
  m.value.verdict = Verdict::kOk;
  m.value.speedup = 1.5;
  m.value.speedup_low = 1.49;
  m.value.speedup_high = 1.51;
  m.value.rounds = 35;
  m.value.detail = "a, \"quoted\" detail";
  m.device = 0;
  r.devices.push_back({.kind = "cpu",
                       .name = "Test CPU",
                       .uuid = "",
                       .driver = "",
                       .host = "here",
                       .threads = 1,
                       .cores = 2});
  r.measurements.push_back(m);
  m.value.speedup = 1.2;
  r.measurements.push_back(m);
  r.generated = {sample("evaluate-sft", "train", "aaaa", "ok", 2.0),
                 sample("evaluate-sft", "train", "bbbb", "ok", 0.5),
                 sample("evaluate-sft", "train", "cccc", "compile_error", 0),
                 sample("evaluate-sft", "train", "cccc", "wrong_output", 0),
                 sample("evaluate-sft", "train", "dddd", "unsupported", 0),
                 sample("evaluate-sft", "heldout_operation", "eeee", "crash", 0),
                 sample("contrastive", "train", "aaaa", "ok", 1.5, 1),
                 sample("contrastive", "train", "aaaa", "ok", 1.5, 2)};
  for (int i = 1; i <= 700; ++i)
    r.training.push_back({"sft", "0a1b2c3d", 0, i, 1500, 6.0 / i, 4e-3, 1, 0.1, 0, 0, 0});
  return r;
}

TEST(EvaluationRows, CountEveryDrawThatSaysSomething) {
  const auto rows = evaluation_rows(example());
  ASSERT_EQ(rows.size(), 3u);
  const EvaluationRow& r = rows[0];
  EXPECT_EQ(r.stage, "evaluate-sft");
  EXPECT_EQ(r.group, "train");
  EXPECT_EQ(r.samples, 4);  // the unsupported one is left out
  EXPECT_EQ(r.valid, 2);
  EXPECT_DOUBLE_EQ(r.valid_share(), 0.5);
  // All are of one task, so draws from it alone are known of.
  EXPECT_NEAR(r.valid_interval.low, 0.150039, 1e-5) << "scipy.stats.binomtest(2, 4)";
  EXPECT_NEAR(r.valid_interval.high, 0.849961, 1e-5);
  EXPECT_FALSE(r.one_draw_interval.has_value());
  EXPECT_DOUBLE_EQ(*r.mean, 1.25);
  EXPECT_NEAR(*r.geometric_mean, 1.0, 1e-12);
  EXPECT_DOUBLE_EQ(*r.max, 2.0);
  EXPECT_DOUBLE_EQ(r.above, 0.25);
  EXPECT_DOUBLE_EQ(r.distinct, 0.75);
  EXPECT_NEAR(r.one_draw, std::pow(2.0, 0.25), 1e-12);
  EXPECT_NEAR(r.one_draw_no_floor, std::pow(2.0 * 0.5 * 0.01 * 0.01, 0.25), 1e-12);
  EXPECT_EQ(rows[1].group, "heldout_operation");
  EXPECT_FALSE(rows[1].mean.has_value());
  EXPECT_EQ(rows[1].one_draw, 1.0);
}

// It was asked with the verdict of the one before. What became of it is told all the same.
TEST(EvaluationRows, ALaterTurnIsNoDraw) {
  store::Results r = example();
  r.generated = {sample("contrastive", "train", "bbbb", "crash", 0, 1),
                 sample("contrastive", "train", "aaaa", "ok", 1.5, 1)};
  r.generated[1].turn = 2;
  const auto rows = evaluation_rows(r);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].samples, 1);
  EXPECT_EQ(rows[0].valid, 0);
  EXPECT_EQ(rows[0].novel, 0);
  EXPECT_EQ(rows[0].wins, 0);
  EXPECT_EQ(rows[0].one_draw, 1);
  EXPECT_EQ(verdict_counts(r).at(0).counts.at("ok"), 1);
  EXPECT_EQ(best_kernels(r).at(0).candidate, "aaaa");
  EXPECT_NE(html(r).find("Of an answer that was asked again the first turn alone counts"), std::string::npos);
  r.generated[0].turn = 3;
  EXPECT_TRUE(evaluation_rows(r).empty());
}

TEST(EvaluationRows, AreAsWideAsTheirTasksDiffer) {
  store::Results r = example();
  r.generated.clear();
  for (int task = 0; task < 6; ++task)
    for (int draw = 0; draw < 50; ++draw) {
      r.generated.push_back(sample("evaluate-sft", "train", "aaaa", task < 3 ? "ok" : "crash", 2.0));
      r.generated.back().task = "task" + std::to_string(task);
    }
  const std::vector<EvaluationRow> rows = evaluation_rows(r);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_DOUBLE_EQ(rows[0].valid_share(), 0.5);
  // 300 independent draws would be known to within 6 points; these are six tasks.
  EXPECT_NEAR(rows[0].valid_interval.low, 0.17, 0.09);
  EXPECT_NEAR(rows[0].valid_interval.high, 0.83, 0.09);
  ASSERT_TRUE(rows[0].one_draw_interval.has_value());
  EXPECT_NEAR(rows[0].one_draw_interval->low, std::exp2(rows[0].valid_interval.low), 1e-9);
  EXPECT_FALSE(rows[0].geometric_mean_interval.has_value()) << "of three tasks";
  EXPECT_NE(html(r).find("50.0 % <small>["), std::string::npos);
}

store::StageRow stage(const std::string& name, const std::string& hash8, bool current = true) {
  store::StageRow row;
  row.name = name;
  row.hash8 = hash8;
  row.current = current;
  return row;
}

// A plot of the page, with the legend above it.
std::string plot_of(const store::Results& results, const std::string& id) {
  const std::string page = html(results);
  const std::size_t at = page.find("id=\"" + id + "\"");
  if (at == std::string::npos) return "there is no " + id;
  const std::size_t legend = page.rfind("<p class=\"legend\">", at);
  return page.substr(legend, page.find("</div>", at) - legend);
}

TEST(Order, IsTheWorkflowsEverywhere) {
  store::Results r = example();
  r.training.push_back({"contrastive", "0a1b2c3d", 1, 1, 1500, 1, 4e-3, 1, 0.1, 0, 0, 0});
  r.stages = {stage("sft", "0a1b2c3d"), stage("evaluate-sft", "0a1b2c3d"), stage("contrastive", "0a1b2c3d")};
  EXPECT_EQ(evaluation_rows(r).front().stage, "evaluate-sft");
  EXPECT_EQ(verdict_counts(r).front().stage, "evaluate-sft");
  // The legends of the plots.
  EXPECT_THAT(plot_of(r, "plot-loss"),
              testing::AllOf(testing::HasSubstr("sft</span>\n<span class=\"line-1\">"),
                             testing::HasSubstr("contrastive</span>\n</p>")));
  EXPECT_THAT(plot_of(r, "plot-speedups"), testing::HasSubstr("/></svg>evaluate-sft</span>\n<span"));
  r.stages = {stage("contrastive", "0a1b2c3d"), stage("evaluate-sft", "0a1b2c3d"), stage("sft", "0a1b2c3d")};
  EXPECT_EQ(evaluation_rows(r).front().stage, "contrastive");
  EXPECT_EQ(verdict_counts(r).front().stage, "contrastive");
}

TEST(Versions, HaveFiguresOfTheirOwn) {
  store::Results r = example();
  r.stages = {stage("evaluate-sft", "0a1b2c3d"), stage("contrastive", "0a1b2c3d"),
              stage("evaluate-sft", "99999999", false)};
  store::SampleRow old = sample("evaluate-sft", "train", "aaaa", "ok", 7.0);
  old.hash8 = "99999999";
  r.generated.push_back(old);
  const auto rows = evaluation_rows(r);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(*rows[0].max, 2.0);
  EXPECT_EQ(rows[3].hash8, "99999999");
  EXPECT_EQ(*rows[3].max, 7.0);
  EXPECT_EQ(verdict_counts(r).back().counts, (std::map<std::string, std::int64_t>{{"ok", 1}}));
  EXPECT_NE(csv(r).find("\ncontrastive,0a1b2c3d,"), std::string::npos);
  EXPECT_EQ(Json::parse(json(r)).at("stages").at(2).at("current"), false);
  const std::string page = html(store::current_versions(r));
  EXPECT_NE(page.find("1 older version of stages left out"), std::string::npos);
  EXPECT_EQ(page.find("7.00×"), std::string::npos);
}

store::AttemptRow attempt(const std::string& name, const std::string& job, std::int64_t number,
                          const std::string& cause, double wall_s, std::int64_t open = 0) {
  store::AttemptRow row;
  row.stage = name;
  row.hash8 = "0a1b2c3d";
  row.job = job;
  row.attempt = number;
  row.cause = cause;
  row.wall_s = wall_s;
  row.cpu_s = wall_s;
  row.cpus = 2;
  row.open = open;
  return row;
}

TEST(Cost, IsSummedByStageAndJob) {
  store::Results r;
  r.stages = {stage("sft", "0a1b2c3d"), stage("contrastive", "0a1b2c3d")};
  r.attempts = {attempt("contrastive", "generate", 1, "finished", 3600),
                attempt("contrastive", "measure", 1, "timeout", 1800, 3),
                attempt("contrastive", "measure", 2, "finished", 5400),
                attempt("contrastive", "compile", 1, "finished", 10),
                attempt("sft", "train", 1, "crash", 7, 0),
                attempt("contrastive", "generate", 1, "finished", 1800)};
  for (store::AttemptRow& row : r.attempts)
    if (row.job == "measure") row.gpus = 2;
  r.attempts[1].peak_memory_bytes = 3000;
  r.attempts[1].memory_bytes = 2000;
  r.attempts[2].peak_memory_bytes = 1000;
  r.attempts[2].memory_bytes = 4000;
  const auto rows = cost_rows(r);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].stage, "sft") << "the order of the workflow";
  EXPECT_EQ(rows[0].lost_s, 0) << "every item had its record: nobody had to go on with it";
  EXPECT_EQ(rows[1].job, "generate");
  EXPECT_EQ(rows[1].shards, 2);
  EXPECT_EQ(rows[1].attempts, 2);
  EXPECT_EQ(rows[1].wall_s, 5400);
  EXPECT_DOUBLE_EQ(*rows[1].cpu_efficiency(), 0.5);
  EXPECT_EQ(rows[1].gpu_hours, 0);
  EXPECT_EQ(rows[2].job, "measure") << "in the order in which they ended";
  EXPECT_EQ(rows[2].shards, 1);
  EXPECT_EQ(rows[2].attempts, 2);
  EXPECT_DOUBLE_EQ(rows[2].gpu_hours, 4);
  EXPECT_DOUBLE_EQ(rows[2].lost_share(), 0.25);
  EXPECT_EQ(rows[2].peak_memory_bytes, 3000);
  EXPECT_EQ(rows[2].memory_bytes, 4000);
  EXPECT_EQ(rows[3].job, "compile");
  const CostRow total = cost_total(rows);
  EXPECT_EQ(total.shards, 5);
  EXPECT_EQ(total.attempts, 6);
  EXPECT_EQ(total.wall_s, 5400 + 7200 + 10 + 7);
  EXPECT_DOUBLE_EQ(total.gpu_hours, 4);
  EXPECT_DOUBLE_EQ(*total.cpu_efficiency(), 0.5);

  const std::string page = html(r);
  EXPECT_NE(page.find("What it cost"), std::string::npos);
  EXPECT_NE(page.find("<tr><th>contrastive</th><td>measure</td><td>1</td><td>2</td><td>2h00m</td><td>2h00m</"
                      "td><td>50.0 %</td>"
                      "<td>2.9 KiB of 3.9 KiB</td><td>4</td><td>25.0 %</td></tr>"),
            std::string::npos)
      << page.substr(page.find("id=\"cost\""), 1500);
  const Json out = Json::parse(json(r));
  EXPECT_EQ(out.at("cost").size(), 4u);
  EXPECT_EQ(out.at("cost").at(2).at("lost_share"), 0.25);
  EXPECT_EQ(out.at("cost_total").at("gpu_hours"), 4.0);
  EXPECT_FALSE(out.at("cost_total").contains("stage"));
}

TEST(Cost, VersionsAndWhatWasSetAsideAreApart) {
  store::Results r;
  r.stages = {stage("sft", "0a1b2c3d"), stage("sft", "99999999", false)};
  r.attempts = {attempt("sft", "train", 1, "finished", 1), attempt("sft", "train", 1, "finished", 2),
                attempt("sft", "train", 1, "finished", 4)};
  r.attempts[1].hash8 = "99999999";
  r.attempts[2].set_aside = true;
  std::string order;
  for (const CostRow& row : cost_rows(r))
    order += row.hash8.substr(0, 1) + (row.set_aside ? "!" : "") + ":" +
             std::to_string(static_cast<int>(row.wall_s)) + " ";
  EXPECT_EQ(order, "0:1 0!:4 9:2 ");
  EXPECT_EQ(cost_rows(store::current_versions(r)).size(), 1u);
}

TEST(Cost, WhatIsNotKnownIsNotShownAsNothing) {
  store::Results r;
  EXPECT_NE(html(r).find("tells of no attempt"), std::string::npos);
  r.attempts = {attempt("sft", "train", 1, "finished", 1)};
  r.attempts[0].cpus = 0;  // a journal that does not say
  EXPECT_FALSE(cost_rows(r)[0].cpu_efficiency().has_value());
  EXPECT_TRUE(Json::parse(json(r)).at("cost").at(0).at("cpu_efficiency").is_null());
}

TEST(BestKernels, TakeTheFastestCorrectProgram) {
  const auto best = best_kernels(example());
  ASSERT_EQ(best.size(), 1u);
  EXPECT_EQ(best[0].speedup, 1.5);
  EXPECT_EQ(best[0].tried, 2);
  EXPECT_NE(best[0].source.find("__global__"), std::string::npos);
  EXPECT_DOUBLE_EQ(headline(best).geometric_mean, 1.5);
}

// row_softmax at 1.5x is host-bound; two others are not.
store::Results on_a_gpu() {
  store::Results r = example();
  store::MeasurementRow m = r.measurements.front();
  r.measurements[0].value.host_bound = true;
  r.measurements[0].value.baseline_idle_ns = 9000;
  m.value.host_bound = false;
  m.value.task = "big";
  m.value.speedup = 4;
  m.value.candidate_ns = 1000;
  m.value.roofline_ns = 714;
  m.value.roofline_bound = "memory";
  m.value.gpu_held_s = 0.25;
  m.value.baseline_alone_ns = 4100;
  m.value.candidate_event_ns = 3520;
  m.value.speedup_before = 4.5;
  m.value.tensor_cores = true;
  m.value.registers = 255;
  m.value.shared_bytes = 49152;
  m.value.spill_bytes = 96;
  m.value.clock = {{"threads", "3 before, 3 after"}};
  r.measurements.push_back(m);
  m.value.task = "bigger";
  m.value.speedup = 1;
  m.value.roofline_ns.reset();
  m.value.roofline_bound.clear();
  m.value.candidate_event_ns.reset();
  m.value.tensor_cores = false;
  m.value.spill_bytes = 0;
  m.value.clock.clear();
  r.measurements.push_back(m);
  return r;
}

TEST(HostBound, TasksAreLeftOutOfTheHeadlineAndCounted) {
  const auto best = best_kernels(on_a_gpu());
  EXPECT_EQ(headline(best).tasks, 2);
  EXPECT_EQ(headline(best).host_bound, 1);
  EXPECT_DOUBLE_EQ(headline(best).geometric_mean, 2);
  EXPECT_DOUBLE_EQ(headline(best).above, 0.5);
  const auto with = headline_with_host_bound(best);
  ASSERT_TRUE(with);
  EXPECT_EQ(with->tasks, 3);
  EXPECT_EQ(with->host_bound, 0);
  EXPECT_FALSE(headline_with_host_bound(best_kernels(example())))
      << "one headline where there is nothing to leave out";
  const std::string page = html(on_a_gpu());
  EXPECT_NE(
      page.find("1 task whose baseline is bound by the host (it waits for launches, not for the GPU) is "
                "left out; with it the geometric mean is 1.82×"),
      std::string::npos);
  EXPECT_NE(page.find(", the baseline bound by the host,"), std::string::npos);
  EXPECT_EQ(html(example()).find("bound by the host"), std::string::npos);
  const Json out = Json::parse(json(on_a_gpu()));
  EXPECT_EQ(out.at("headline").at("tasks"), 2);
  EXPECT_EQ(out.at("headline").at("host_bound"), 1);
  EXPECT_EQ(out.at("headline_with_host_bound").at("tasks"), 3);
  EXPECT_FALSE(Json::parse(json(example())).contains("headline_with_host_bound"));
}

// Stages, the devices of a sweep and the headline leave the same tasks out.
TEST(HostBound, SpeedsOfAStageLeaveItsTasksOut) {
  store::Results r = on_a_gpu();
  r.measurements[2].value.candidate = "bbbb";  // `big`, 4x
  store::SampleRow big = sample("evaluate-sft", "train", "bbbb", "ok", 4);
  big.task = "big";
  r.generated = {sample("evaluate-sft", "train", "aaaa", "ok", 1.5),
                 sample("evaluate-sft", "train", "cccc", "wrong_output", 0), big};
  const EvaluationRow row = evaluation_rows(r).at(0);
  EXPECT_EQ(row.tasks, 2);
  EXPECT_EQ(row.host_bound, 1);
  EXPECT_EQ(row.samples, 3);
  EXPECT_EQ(row.counted, 1) << "not the wrong program of the task that is left out either";
  EXPECT_EQ(row.valid, 2);
  EXPECT_EQ(row.max, 4);
  EXPECT_EQ(row.one_draw, 4);
  EXPECT_EQ(row.wins, 1);
  EXPECT_NE(html(r).find("<td>2 (1 bound by the host)</td><td>3</td>"), std::string::npos);
  r.generated.pop_back();
  EXPECT_EQ(evaluation_rows(r).at(0).counted, 0);
  EXPECT_TRUE(Json::parse(json(r)).at("evaluations").at(0).at("wins").is_null());
  EXPECT_NE(html(r).find("<td>–</td><td>–</td><td>–</td><td>–</td></tr>"), std::string::npos);
  // One measurement of several that says otherwise changes nothing.
  store::MeasurementRow other = r.measurements[0];
  r.measurements.push_back(other);
  other.value.host_bound = false;
  r.measurements.push_back(other);
  EXPECT_EQ(evaluation_rows(r).at(0).host_bound, 1);
  EXPECT_EQ(headline(best_kernels(r)).host_bound, 1);
}

// One task at 1.08x: the headline counts it by its score, and as a win by its interval alone.
Headline of_one(double low, double high, bool imprecise) {
  store::Results r = example();
  r.measurements.resize(1);
  Measurement& m = r.measurements[0].value;
  m.speedup = 1.08;
  m.speedup_low = low;
  m.speedup_high = high;
  m.imprecise = imprecise;
  return headline(best_kernels(r));
}

TEST(Wins, AreCountedByTheIntervalBesideThePapersCount) {
  EXPECT_EQ(of_one(0.98, 1.19, false).wins, 0);
  EXPECT_EQ(of_one(0.98, 1.19, false).above, 1);
  EXPECT_EQ(of_one(1.07, 1.09, false).wins, 1);
  EXPECT_EQ(of_one(1.02, 1.14, true).wins, 1) << "wide, and above all the same";
  const std::string page = html(example());
  EXPECT_NE(page.find("<b>100.0 %</b>of 1 tasks with a win: an interval above 1.01×"), std::string::npos);
  EXPECT_NE(page.find("<b>100.0 %</b>with a best score above 1.01×, as CUDA-L1 counts"), std::string::npos);
  const Json out = Json::parse(json(example()));
  EXPECT_EQ(out.at("headline").at("wins"), 1.0);
  EXPECT_EQ(out.at("headline").at("above_1_01"), 1.0);
  EXPECT_EQ(out.at("best").at(0).at("win"), true);
}

// The best score of a task may have a wide interval and hide a program that is surely faster.
TEST(Wins, AnyProgramOfATaskMayWin) {
  store::Results r = example();
  r.measurements[0].value.imprecise = true;
  r.measurements[0].value.speedup_low = 0.99;
  r.measurements[1].value.speedup_low = 1.19;
  const auto best = best_kernels(r);
  EXPECT_EQ(best[0].speedup, 1.5);
  EXPECT_TRUE(best[0].imprecise);
  EXPECT_TRUE(best[0].win);
  EXPECT_NE(html(r).find("1.50× over eager [0.99, 1.51], imprecise, "), std::string::npos);
}

TEST(Wins, OfAStageAreThoseOfTheSamplesMeasurements) {
  store::Results r = example();
  const auto rows = [&] { return evaluation_rows(r).back(); };  // contrastive: 1.5x [1.49, 1.51], twice
  EXPECT_EQ(rows().wins, 1);
  EXPECT_EQ(rows().above, 1);
  r.measurements[0].value.speedup_low = 0.98;
  EXPECT_EQ(rows().wins, 0);
  EXPECT_EQ(rows().above, 1);
  EXPECT_EQ(Json::parse(json(r)).at("evaluations").back().at("wins"), 0.0);
}

TEST(Credit, AStageHasItsOwnProgramsAlone) {
  store::Results r = example();
  r.generated[0].known = true;  // evaluate-sft's 2.0x
  const EvaluationRow row = evaluation_rows(r)[0];
  EXPECT_EQ(row.valid, 2);
  EXPECT_EQ(row.known, 1);
  EXPECT_EQ(row.novel, 1);
  EXPECT_EQ(row.novel_programs, 1);
  EXPECT_EQ(*row.max, 0.5);
  EXPECT_EQ(row.above, 0);
  EXPECT_NEAR(row.one_draw, std::pow(2.0, 0.25), 1e-12) << "a draw gives what it gives";
  // One bin, from 0.5 on, has all of the stage's novel programs; the other stage has none.
  const std::string plot = plot_of(r, "plot-speedups");
  EXPECT_THAT(plot, testing::HasSubstr("evaluate-sft</title>"));
  EXPECT_THAT(plot, testing::HasSubstr(">0.5×</text>"));
  EXPECT_THAT(plot, testing::HasSubstr(" d=\"M46.0 178.0H46.0V8.0H84.2V178.0\""));
}

TEST(Header, CountsWhatNobodyMeasuredApart) {
  store::Results r = example();
  EXPECT_NE(html(r).find("2 measurements of 1 programs over 1 tasks. Warpsmith"), std::string::npos);
  r.stages.push_back(
      {.name = "collect", .kind = "collect", .hash8 = "", .summary = R"({"sft_only": {"programs": 1}})"});
  EXPECT_NE(
      html(r).find("2 measurements of 0 programs over 1 tasks. 1 more programs were learned as they are."),
      std::string::npos);
}

TEST(Credit, TheBestProgramNamesItsAuthor) {
  store::Results r = example();
  EXPECT_NE(html(r).find("; generated by contrastive</span>"), std::string::npos);
  EXPECT_NE(html(r).find("(1 of 1 are a model's own)"), std::string::npos);
  r.candidates[0].origin = "dataset";
  r.candidates[0].stage = "collect";
  EXPECT_NE(html(r).find("; from dataset, measured by contrastive</span>"), std::string::npos);
  EXPECT_NE(html(r).find("(0 of 1 are a model's own)"), std::string::npos);
  EXPECT_EQ(headline(best_kernels(r)).by_model, 0);
}

// A person's program in a model's hand is a person's.
TEST(Credit, TheBestNovelProgramStandsBesideTheBest) {
  store::Results r = example();
  const auto best = [&] { return best_kernels(r).at(0); };
  ASSERT_TRUE(best().novel);
  EXPECT_EQ(best().novel_speedup, best().speedup);
  const std::string first = best().candidate;
  for (store::SampleRow& row : r.generated) row.known = row.known || row.candidate == first;
  store::SampleRow known = r.generated.at(0);
  known.candidate = first;
  known.known = true;
  r.generated.push_back(known);
  EXPECT_FALSE(best().novel);
  EXPECT_EQ(headline(best_kernels(r)).by_model, 0);
  EXPECT_NE(html(r).find(", a known program</span>"), std::string::npos);
  EXPECT_NE(html(r).find(best().novel_candidate.empty() ? "No novel program of a model is correct."
                                                        : "Best novel program of a model: "),
            std::string::npos);
  EXPECT_LT(best().novel_speedup, best().speedup);
}

TEST(Direction, OfScoreAndTimesIsExplainedWhereTheyDiffer) {
  store::Results r = example();
  r.measurements.resize(1);
  store::MeasurementRow& row = r.measurements[0];
  row.value.speedup = 1.08;
  row.value.speedup_low = 0.98;
  row.value.speedup_high = 1.19;
  row.value.baseline_ns = 113e3;
  row.value.candidate_ns = 123e3;
  row.value.rounds = 3;
  r.samples = {100, 100, 100, 90, 110, 120};
  row.sample_count = 6;
  const std::string words = best_kernels(r)[0].direction;
  EXPECT_TRUE(words.starts_with("The score says faster, the times say slower: ")) << words;
  EXPECT_NE(words.find("faster in 1 of 3 rounds."), std::string::npos) << words;
  EXPECT_TRUE(words.ends_with("The interval [0.98, 1.19] holds 1: no difference is shown.")) << words;
  EXPECT_NE(html(r).find(words), std::string::npos);
  row.value.speedup = 0.9;
  row.value.candidate_ns = 110e3;
  EXPECT_TRUE(best_kernels(r)[0].direction.starts_with("The score says slower, the times say faster: "));
  row.value.baseline_ratio = 2;
  EXPECT_EQ(best_kernels(r)[0].direction.find("rounds."), best_kernels(r)[0].direction.rfind("rounds."))
      << "the samples are eager's";
  row.value.candidate_ns = 123e3;
  EXPECT_EQ(best_kernels(r)[0].direction, "");
  row.value.speedup = 1.08;
  row.value.candidate_ns = 100e3;
  EXPECT_EQ(best_kernels(r)[0].direction, "");
}

TEST(Degenerate, TasksAreLeftOutOfHeadlinesAndShown) {
  store::Results r = on_a_gpu();
  store::TaskRow task;
  task.id = "big";
  task.degenerate = "one constant passes";
  r.tasks.push_back(task);
  const auto best = best_kernels(r);
  EXPECT_EQ(headline(best).tasks, 1);
  EXPECT_EQ(headline(best).degenerate, 1);
  EXPECT_EQ(headline_with_host_bound(best)->tasks, 2);
  EXPECT_DOUBLE_EQ(headline_with_host_bound(best)->geometric_mean, std::sqrt(1.5));
  EXPECT_NE(html(r).find("1 task that a program without any work would pass is left out"), std::string::npos);
  EXPECT_NE(html(r).find(", degenerate: one constant passes,"), std::string::npos);
  EXPECT_EQ(Json::parse(json(r)).at("headline").at("degenerate"), 1);
  const std::string page = html(on_a_gpu());
  EXPECT_EQ(page.find("degenerate"), std::string::npos);
}

TEST(Degenerate, TasksAreInNoMeanOfAStage) {
  store::Results r = example();
  const auto before = evaluation_rows(r);
  store::SampleRow more = sample("evaluate-sft", "train", "eeee", "ok", 50.0);
  more.task = "no_work";
  r.generated.push_back(more);
  store::TaskRow task;
  task.id = more.task;
  task.degenerate = "one constant passes";
  r.tasks.push_back(task);
  const auto rows = evaluation_rows(r);
  ASSERT_EQ(rows.size(), before.size());
  EXPECT_EQ(rows[0].max, before[0].max);
  EXPECT_EQ(rows[0].samples, before[0].samples);
  EXPECT_EQ(rows[0].one_draw, before[0].one_draw);
  r.tasks.back().degenerate.clear();
  EXPECT_EQ(evaluation_rows(r)[0].max, 50.0);
}

TEST(HostBound, WhereEveryTaskIsThePageSaysSo) {
  store::Results r = example();
  for (store::MeasurementRow& m : r.measurements) m.value.host_bound = true;
  EXPECT_NE(html(r).find("No headline: the baseline of every task is bound by the host. 1 task"),
            std::string::npos);
}

TEST(RooflineShare, IsShownWhereItIsKnown) {
  const auto best = best_kernels(on_a_gpu());
  ASSERT_EQ(best.size(), 3u);
  EXPECT_EQ(best[0].task, "big");
  EXPECT_NEAR(best[0].roofline_share.value_or(0), 0.714, 1e-12);
  EXPECT_FALSE(best[1].roofline_share);
  EXPECT_NE(html(on_a_gpu()).find(", 71 % of the roofline (memory)"), std::string::npos);
  EXPECT_EQ(html(example()).find("roofline"), std::string::npos);
  const Json out = Json::parse(json(on_a_gpu()));
  EXPECT_EQ(out.at("best").at(0).at("roofline_bound"), "memory");
  EXPECT_TRUE(out.at("best").at(1).at("roofline_share").is_null());
}

TEST(MachineCode, IsToldOfWhereItIsKnown) {
  const std::string page = html(on_a_gpu());
  const auto kernel = [&](const std::string& task) {
    const std::size_t at = page.find("<b>" + task + "</b>");
    return page.substr(at, page.find("</p>", at) - at);
  };
  EXPECT_NE(kernel("big").find("of the roofline (memory), tensor cores, 255 registers, 96 bytes of spills,"),
            std::string::npos)
      << kernel("big");
  EXPECT_NE(kernel("bigger").find(", 255 registers,"), std::string::npos) << "and no spills";
  EXPECT_EQ(kernel("bigger").find("tensor cores"), std::string::npos) << "its code has none";
  EXPECT_EQ(kernel("row_softmax").find("tensor cores"), std::string::npos) << "not known";
  EXPECT_EQ(kernel("row_softmax").find("registers"), std::string::npos);
  const Json best = Json::parse(json(on_a_gpu())).at("best");
  EXPECT_EQ(best.at(0).at("tensor_cores"), true);
  EXPECT_EQ(best.at(1).at("tensor_cores"), false);
  EXPECT_TRUE(best.at(2).at("tensor_cores").is_null());
  EXPECT_EQ(best.at(0).at("registers"), 255);
  EXPECT_EQ(best.at(0).at("shared_bytes"), 49152);
  EXPECT_EQ(best.at(1).at("spill_bytes"), 0);
  EXPECT_TRUE(best.at(2).at("registers").is_null());
  const Json measurements = Json::parse(json(on_a_gpu())).at("measurements");
  EXPECT_EQ(measurements.at(2).at("spill_bytes"), 96);
  EXPECT_FALSE(measurements.at(0).contains("spill_bytes"));
}

TEST(OwnEvents, AreShownBesideTheTimeOfTheClock) {
  EXPECT_NE(html(on_a_gpu()).find("→ 1.0 µs (its own events: 3.5 µs), 71 % of the roofline"),
            std::string::npos);
  EXPECT_EQ(html(example()).find("its own events"), std::string::npos);
  const Json out = Json::parse(json(on_a_gpu()));
  EXPECT_EQ(out.at("best").at(0).at("candidate_event_ns"), 3520.0);
  EXPECT_TRUE(out.at("best").at(1).at("candidate_event_ns").is_null());
  EXPECT_EQ(out.at("measurements").at(2).at("clock").at("threads"), "3 before, 3 after");
}

std::string shell(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  std::string out;
  char buffer[4096];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.append(buffer, n);
  ::pclose(pipe);
  return out;
}

// The rows of a CSV table as Python's reader gives them: a list of objects.
Json read_by_python(const std::string& text) {
  const Scratch scratch;
  write_file_atomic(scratch / "table.csv", text);
  write_file_atomic(scratch / "read.py",
                    "import csv, json, sys\n"
                    "print(json.dumps(list(csv.DictReader(open(sys.argv[1], newline='')))))\n");
  return Json::parse(
      shell("python3 " + (scratch / "read.py").string() + " " + (scratch / "table.csv").string()));
}

TEST(Export, MeasurementsSayWhetherTheyAreWins) {
  store::Results r = example();
  r.measurements.resize(1, r.measurements[0]);
  r.measurements.resize(5, r.measurements[0]);
  const auto set = [&](std::size_t i, double low, double score, bool imprecise) {
    r.measurements[i].value.speedup_low = low;
    r.measurements[i].value.speedup = score;
    r.measurements[i].value.imprecise = imprecise;
  };
  set(0, 1.05, 1.08, false);
  set(1, 0.98, 1.08, false);
  set(2, 1.05, 1.3, true);
  r.measurements[3].value.rounds = 0;
  set(4, 1.05, 1.08, false);
  r.measurements[4].value.verdict = Verdict::kUnstable;
  const std::vector<std::string> wins = {"1", "0", "1", "", "0"}, above = {"1", "1", "1", "", "0"};
  const Json rows = read_by_python(csv(r)), list = Json::parse(json(r)).at("measurements");
  for (std::size_t i = 0; i < wins.size(); ++i) {
    EXPECT_EQ(rows[i]["win"], wins[i]) << i;
    EXPECT_EQ(rows[i]["above_1_01"], above[i]) << i;
    EXPECT_EQ(list[i].contains("win"), i != 3);
    EXPECT_EQ(list[i].value("win", false), wins[i] == "1");
  }
}

TEST(Export, CsvKeepsTextExactly) {
  store::Results r = example();
  const std::vector<std::string> texts = {"=1+1",      "-2",       "@x",          "\x1b[2J\a",
                                          "a\rb\r\nc", " \"q\", ", "\xe2\x80\xae"};
  r.candidates.resize(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) r.candidates[i].source = texts[i];
  const Json rows = read_by_python(csv(r, "candidates"));
  ASSERT_EQ(rows.size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(rows[i]["source"], texts[i]);
}

TEST(Export, CsvHasWhatIsKnownOfAGpu) {
  const Json rows = read_by_python(csv(on_a_gpu()));
  ASSERT_EQ(rows.size(), 4u);
  const Json &first = rows[0], &big = rows[2];
  EXPECT_EQ(first["detail"], "a, \"quoted\" detail");
  EXPECT_EQ(first["host_bound"], "1");
  EXPECT_EQ(first["baseline_idle_ns"], "9000");
  EXPECT_EQ(first["spill_bytes"], "") << "not known";
  EXPECT_EQ(first["host"], "here");
  EXPECT_EQ(big["roofline_ns"], "714");
  EXPECT_EQ(big["roofline_bound"], "memory");
  EXPECT_EQ(big["speedup_before"], "4.5");
  EXPECT_EQ(big["tensor_cores"], "1");
  EXPECT_EQ(big["spill_bytes"], "96");
  EXPECT_EQ(big["clock"], "{\"threads\":\"3 before, 3 after\"}");
  EXPECT_EQ(rows[3]["spill_bytes"], "0") << "known, and none";
  for (const Field<Measurement>& field : measurement_fields())
    EXPECT_EQ(big.contains(field.name), field.notes.column || field.name == "device") << field.name;
  for (const auto& [name, value] : big.items())
    EXPECT_TRUE(value.is_string()) << name << ": a row is too short";
}

// Measurements have one row for a program; whoever wants every sample asks for samples.
TEST(Export, EachTableIsWholeInCsvAndJson) {
  store::Results r = example();
  r.stages = {stage("evaluate-sft", "0a1b2c3d"), stage("contrastive", "0a1b2c3d")};
  r.stages.front().summary = "{\"valid\":0.5}";
  r.training.push_back(
      {.stage = "sft", .hash8 = "01234567", .round = 1, .step = 17, .tokens = 99, .loss = 2.5});
  const Json whole = Json::parse(json(r));
  EXPECT_EQ(read_by_python(csv(r, "measurements")).size(), r.measurements.size());
  const Json samples = read_by_python(csv(r, "samples"));
  ASSERT_EQ(samples.size(), r.generated.size());
  EXPECT_EQ(whole.at("samples").size(), r.generated.size());
  EXPECT_EQ(samples[0]["candidate"], r.generated[0].candidate);
  EXPECT_EQ(samples[0]["verdict"], whole.at("samples")[0].at("verdict"));
  const Json training = read_by_python(csv(r, "training"));
  EXPECT_EQ(training.back()["step"], "17");
  EXPECT_EQ(training.back()["loss"], "2.5");
  EXPECT_EQ(whole.at("training").back().at("loss"), 2.5);
  const Json stages = read_by_python(csv(r, "stages"));
  ASSERT_EQ(stages.size(), r.stages.size());
  EXPECT_EQ(stages[0]["name"], r.stages[0].name);
  EXPECT_EQ(stages[0]["summary"], "{\"valid\":0.5}");
  EXPECT_EQ(whole.at("stages")[0].at("summary").at("valid"), 0.5);
  EXPECT_EQ(whole.at("stages")[0].at("stage"), r.stages[0].name);
  for (const std::string& name : table_names())
    EXPECT_EQ(read_by_python(csv(store::Results{}, name)), Json::array()) << name;
  EXPECT_THROW(csv(r, "nothing"), Error);
}

TEST(Export, CsvQuotesWhatItMust) {
  const std::string text = csv(example());
  EXPECT_NE(text.find("\"a, \"\"quoted\"\" detail\""), std::string::npos);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
}

TEST(Export, JsonHoldsTheSameFigures) {
  const Json out = Json::parse(json(example()));
  EXPECT_EQ(out.at("evaluations").at(0).at("valid"), 2);
  EXPECT_TRUE(out.at("evaluations").at(1).at("mean").is_null());
  EXPECT_EQ(out.at("measurements").size(), 2u);
}

TEST(Html, AReplayedRunSaysSo) {
  store::Results r = example();
  EXPECT_EQ(html(r).find("its speedups say nothing"), std::string::npos);
  r.provenance = R"({"replay_timings": "other"})";
  EXPECT_NE(html(r).find("its speedups say nothing"), std::string::npos);
}

// Timed against eager, the score divided by cuda_graph's ratio.
store::Results with_baselines() {
  store::Results r;
  r.devices.push_back({.kind = "H200", .name = "NVIDIA H200"});
  store::MeasurementRow row;
  row.stage = "sweep";
  row.hash8 = "0a1b2c3d";
  row.device = 0;
  row.value.task = "gelu";
  row.value.candidate = "c1";
  row.value.verdict = Verdict::kOk;
  row.value.baseline = "cuda_graph";
  row.value.rounds = 35;
  row.value.baseline_ratio = 1.5;
  row.value.speedup = 2;
  row.value.speedup_low = 1.98;
  row.value.speedup_high = 2 * 2 / 1.98;
  r.measurements.push_back(row);
  const auto baseline = [&](const std::string& name, double ratio, const std::string& kind = "H200") {
    store::BaselineRow b{"sweep", "0a1b2c3d", 0, {}};
    b.value.task = "gelu";
    b.value.name = name;
    b.value.device_kind = kind;
    b.value.state = ratio > 0 ? BaselineState::kCovered : BaselineState::kMissing;
    b.value.reason = ratio > 0 ? "" : "there is no <python3>";
    b.value.ratio = b.value.low = b.value.high = ratio;
    r.baselines.push_back(b);
  };
  baseline("eager", 1.001);
  baseline("cuda_graph", 1.5);
  baseline("torch_compile", 0);
  baseline("cudnn", 2);
  baseline("cudnn", 9, "L40");
  return r;
}

TEST(Baselines, ASpeedupIsHadOverEachAndOverTheBest) {
  const store::Results r = with_baselines();
  const Comparison c = compare_with_baselines(r, r.measurements[0]);
  ASSERT_EQ(c.all.size(), 4u);
  EXPECT_EQ(c.all[0].name, "eager");
  EXPECT_NEAR(c.all[0].speedup->value, 3, 1e-12);
  EXPECT_NEAR(c.all[1].speedup->value, 2, 1e-12);  // as it stands
  EXPECT_EQ(c.all[1].speedup->low, 1.98);
  EXPECT_FALSE(c.all[2].speedup);
  EXPECT_EQ(c.all[2].why, "missing: there is no <python3>");
  EXPECT_NEAR(c.all[3].speedup->value, 1.5,
              1e-12);  // 3 over eager, and cuDNN is twice as fast; the L40's does not count
  EXPECT_EQ(c.best, "cudnn");
  EXPECT_NEAR(c.over_best->value, 1.5, 1e-12);
  EXPECT_EQ(c.missing, std::vector<std::string>{"torch_compile"});
}

// One that has no time may be the fastest: the headline over the best counts no such task.
TEST(Baselines, ATaskThatLacksOneIsNoFigureOverTheBest) {
  store::Results r = with_baselines();
  Headline h = headline(best_kernels(r));
  EXPECT_FALSE(h.over_best_baseline);
  EXPECT_EQ(h.lacking, 1);
  EXPECT_NE(html(r).find("over the best baseline it is not known: 1 task lacks the time of one"),
            std::string::npos);
  EXPECT_NE(html(r).find("no time of torch_compile, which may be faster"), std::string::npos);
  for (store::BaselineRow& b : r.baselines) {
    if (b.value.name != "torch_compile") continue;
    b.value.state = BaselineState::kNotCovered;  // it can have none
  }
  h = headline(best_kernels(r));
  EXPECT_NEAR(h.over_best_baseline.value(), 1.5, 1e-12);
  EXPECT_EQ(h.lacking, 0);
  EXPECT_NE(html(r).find("over the best baseline of each task the geometric mean is 1.50×"),
            std::string::npos);
}

// The fastest of several measurements is in part the luckiest; a later one of the same program is not chosen.
TEST(BestKernels, AProgramHasTheFiguresOfItsLastMeasurement) {
  store::Results r = example();
  store::MeasurementRow again = r.measurements.at(0);
  ASSERT_EQ(again.value.verdict, Verdict::kOk);
  const double first = again.value.speedup;
  again.stage = "winners";
  again.value.speedup = 0.9 * first;
  r.measurements.push_back(again);
  const auto of = [&] {
    for (const BestKernel& kernel : best_kernels(r))
      if (kernel.task == again.value.task) return kernel;
    return BestKernel{};
  };
  EXPECT_EQ(of().speedup, 0.9 * first);
  EXPECT_EQ(of().stage, "winners");
  r.measurements.back().value.verdict = Verdict::kUnstable;  // it has no figure then
  EXPECT_EQ(of().speedup, first);
}

TEST(Baselines, WhereNoneIsFasterEagerIsTheBest) {
  store::Results r = with_baselines();
  for (store::BaselineRow& b : r.baselines) b.value.ratio = b.value.low = b.value.high = 0.9;
  r.measurements[0].value.baseline = "eager";
  r.measurements[0].value.baseline_ratio = 0;
  const Comparison c = compare_with_baselines(r, r.measurements[0]);
  EXPECT_EQ(c.best, "eager");
  EXPECT_EQ(c.over_best->value, 2);
}

TEST(Baselines, StandInEveryExport) {
  const store::Results r = with_baselines();
  const std::string page = html(r);
  EXPECT_NE(page.find("<h2>Baselines</h2>"), std::string::npos);
  EXPECT_NE(page.find("2.00× over cuda_graph ["), std::string::npos);
  EXPECT_NE(page.find("1.50× over the best that was timed, cudnn"), std::string::npos);
  EXPECT_NE(page.find("speedup over cuda_graph of the best correct program"), std::string::npos);
  EXPECT_NE(page.find("there is no &lt;python3&gt;"), std::string::npos);
  const Json out = Json::parse(json(r));
  EXPECT_EQ(out.at("baselines").size(), 5u);
  EXPECT_NEAR(out.at("measurements").at(0).at("over").at("eager").at("speedup").get<double>(), 3, 1e-12);
  EXPECT_EQ(out.at("best").at(0).at("best_baseline"), "cudnn");
  const std::string text = csv(r);
  EXPECT_NE(text.find(",over_eager,over_cuda_graph,over_torch_compile,over_cudnn,best_baseline,over_best,"
                      "missing_baselines\n"),
            std::string::npos);
  EXPECT_NE(text.find(",3,2,,1.5,cudnn,1.5,torch_compile\n"), std::string::npos) << text;
}

// A page may not hold them, and they turn or hide what somebody reads.
TEST(Html, ControlCharactersAreShown) {
  store::Results r = example();
  const std::string odd("\x1b[2J\a\r\0\x7f \xc2\x9b \xe2\x80\xae \xe2\x81\xa6 \xff", 21);
  const std::string shown = "\\u001b[2J\\u0007\\u000d\\u0000\\u007f \\u009b \\u202e \\u2066 \\xff";
  r.run = odd;
  r.workflow = "a\tb\r\nc " + odd;
  for (store::CandidateRow& c : r.candidates) c.source = "<&\"" + odd;
  for (DeviceFacts& d : r.devices) d.name = odd;
  for (store::SampleRow& s : r.generated) s.stage = odd.substr(0, odd.size() - 1);
  const std::string page = html(r);
  EXPECT_NE(page.find("<h1>" + shown + "</h1>"), std::string::npos);
  EXPECT_NE(page.find("<pre>a\tb\nc " + shown + "</pre>"), std::string::npos);
  EXPECT_NE(page.find("<pre>&lt;&amp;&quot;" + shown + "</pre>"), std::string::npos);
  EXPECT_NE(page.find("<td>" + shown + "</td>"), std::string::npos);
  for (const char c : page)
    EXPECT_TRUE(c == '\n' || c == '\t' || (static_cast<unsigned char>(c) >= ' ' && c != '\x7f')) << int{c};
  for (const char* turning : {"\xc2\x9b", "\xe2\x80\xae", "\xe2\x81\xa6", "\xff"})
    EXPECT_EQ(page.find(turning), std::string::npos);
}

TEST(Html, AnEmptyRunIsAPage) { EXPECT_NE(html(store::Results{}).find("</html>"), std::string::npos); }

// The page as a real browser shows it, without a network, its scripts run; `harness`: the page to open
// instead, which may look into report.html beside it. Empty: there is no browser here.
std::string in_browser(const std::string& page, const std::string& harness = "") {
  const std::string browser = shell("command -v chromium chromium-browser google-chrome | head -n 1");
  if (browser.empty()) return "";
  char name[] = "/tmp/warpsmith-report-XXXXXX";
  const fs::path folder = ::mkdtemp(name);
  write_file_atomic(folder / "report.html", page);
  if (!harness.empty()) write_file_atomic(folder / "harness.html", harness);
  const std::string out =
      shell(browser.substr(0, browser.find('\n')) +
            " --headless --no-sandbox --disable-gpu --allow-file-access-from-files --user-data-dir=" +
            (folder / "profile").string() + " --virtual-time-budget=5000 --dump-dom file://" +
            (folder / (harness.empty() ? "report.html" : "harness.html")).string() + " 2>/dev/null");
  fs::remove_all(folder);
  return out;
}

TEST(Html, ABrowserFindsTablesAndPlots) {
  const std::string page = in_browser(html(example()));
  if (page.empty()) GTEST_SKIP() << "no Chromium here";
  EXPECT_NE(page.find("data-page=\"ready\""), std::string::npos) << page.substr(0, 400);
  for (const char* id : {"id=\"stages\"", "id=\"verdicts\"", "id=\"devices\"", "id=\"plot-speedups\"",
                         "id=\"plot-loss\"", "id=\"plot-fast-p\""})
    EXPECT_NE(page.find(id), std::string::npos) << id;
  EXPECT_NE(page.find("example &lt;run&gt;"), std::string::npos);
  EXPECT_NE(page.find("// &lt;/script&gt;"), std::string::npos);
  EXPECT_EQ(page.find("http://"), std::string::npos) << "the page must not need a network";
}

// Frames, as a window of a browser without a screen is no narrower than 500 pixels.
constexpr const char* kHarness = R"(<!doctype html><body><script>
const told = {};
function look(frame) {
  const page = frame.contentDocument, out = {width: frame.contentWindow.innerWidth, ready: page.body.dataset.page};
  const tasks = () => [...page.querySelectorAll('#winners tbody tr:not([hidden]) th')].map((h) => h.textContent);
  const head = [...page.querySelectorAll('#winners thead button')].find((b) => b.textContent === 'speedup');
  out.beyond = page.documentElement.scrollWidth - page.documentElement.clientWidth;
  head.click();
  out.down = tasks();
  head.click();
  out.up = tasks();
  const input = page.querySelector('.filter input');
  input.value = 'HOST';
  input.dispatchEvent(new Event('input'));
  out.filtered = tasks();
  out.count = page.querySelector('.filter output').textContent;
  page.querySelector('#winners tbody tr:not([hidden]) a').click();
  return new Promise((done) => setTimeout(() => {
    const program = page.querySelector('details.kernel[open]');
    out.opened = program && program.querySelector('b').textContent;
    out.words = program && [...program.querySelectorAll('.of-word')].map((w) => w.textContent);
    out.copy = program && program.querySelectorAll('figcaption button').length;
    done(out);
  }, 200));
}
for (const width of [1200, 400]) {
  const frame = document.createElement('iframe');
  frame.style = `width: ${width}px; height: 900px; border: 0`;
  frame.src = 'report.html';
  frame.onload = async () => {
    try { told[width] = await look(frame); } catch (error) { told[width] = {error: String(error)}; }
    if (Object.keys(told).length === 2) document.body.replaceChildren('TOLD' + JSON.stringify(told) + 'END');
  };
  document.body.append(frame);
}
</script></body>)";

TEST(Html, ABrowserSortsFiltersAndOpensAtTwoWidths) {
  store::Results r = on_a_gpu();
  r.tasks.push_back({"a_task_whose_name_is_longer_than_a_telephone_is_wide_and_has_no_place_to_break_it", "",
                     "train", "", "", "", "collect", "0c0c0c0c", 1});
  const std::string page = in_browser(html(r), kHarness);
  if (page.empty()) GTEST_SKIP() << "no Chromium here";
  const std::size_t at = page.find(">TOLD"), end = page.find("END", at);
  ASSERT_NE(at, std::string::npos) << page.substr(0, 2000);
  const Json told = Json::parse(page.substr(at + 5, end - at - 5));
  const std::string none = r.tasks.back().id;
  for (const int width : {1200, 400}) {
    const Json& of = told.at(std::to_string(width));
    ASSERT_FALSE(of.contains("error")) << of;
    EXPECT_EQ(of.at("width"), width);
    EXPECT_EQ(of.at("ready"), "ready") << "a script failed";
    EXPECT_LE(of.at("beyond"), 0) << "the page scrolls sideways at " << width;
    EXPECT_EQ(of.at("down"), Json({"big", "row_softmax", "bigger", none}));
    EXPECT_EQ(of.at("up"), Json({none, "bigger", "row_softmax", "big"}));
    EXPECT_EQ(of.at("filtered"), Json({"row_softmax"}));
    EXPECT_EQ(of.at("count"), "1 of 4");
    EXPECT_EQ(of.at("opened"), "row_softmax");
    EXPECT_EQ(of.at("words"), Json({"def", "return", "__global__", "void"}));
    EXPECT_EQ(of.at("copy"), 2);
  }
}

TEST(Winners, LossesAreShownAsSuch) {
  store::Results r = with_baselines();
  EXPECT_EQ(html(r).find("class=\"lost\""), std::string::npos);
  r.baselines[3].value.ratio = r.baselines[3].value.low = r.baselines[3].value.high = 6;
  const std::string page = html(r);
  EXPECT_NE(page.find("class=\"lost\">0.50× slower <small>"), std::string::npos);
  EXPECT_NE(page.find("<td>slower than the best baseline</td>"), std::string::npos);
  EXPECT_NE(
      page.find("On 0 the best program is slower than the baseline, on 1 slower than the best baseline."),
      std::string::npos);
}

TEST(Winners, HaveADiffToWhatTheyWereMadeFrom) {
  store::Results r = example();
  EXPECT_EQ(html(r).find("class=\"diff\""), std::string::npos);
  store::CandidateRow before = r.candidates[0];
  before.id = "0000";
  before.source = "a\nb<\n";
  r.candidates[0].parent = "0000";
  r.candidates[0].source = "a\nc\n";
  r.candidates.push_back(before);
  EXPECT_NE(html(r).find("<pre class=\"diff\"> a\n<del>-b&lt;</del>\n<ins>+c</ins>\n</pre>"),
            std::string::npos);
}

TEST(Winners, ShowTheirRawSamples) {
  store::Results r = example();
  r.samples = {1000, 2000, 500, 700};
  r.measurements[0].sample_begin = 0;
  r.measurements[0].sample_count = 4;
  EXPECT_NE(
      html(r).find(
          "raw samples: 2 rounds, µs a call</summary><pre>eager\n1.000 2.000\n\nthe program\n0.500 0.700<"),
      std::string::npos);
  r.measurements[0].sample_count = 5;
  EXPECT_EQ(html(r).find("raw samples"), std::string::npos) << "more than there are";
}

TEST(Story, SaysWhetherItCanBeTrusted) {
  store::Results r = example();
  r.provenance = R"({"seed": 7})";
  r.measurements[0].value.imprecise = true;
  store::MeasurementRow unstable = r.measurements[0];
  unstable.value.verdict = Verdict::kUnstable;
  r.measurements.push_back(unstable);
  const std::string page = html(r);
  for (const char* words :
       {"Measured on Test CPU.", "These are scores of a CPU: they say nothing about a GPU.",
        "Unstable: 1 of 3 (33.3 %) right programs.", "Imprecise: 1 of 2 (50.0 %) scores.", "Seed 7.",
        "1 of 1 (100.0 %) tasks have a win over the baseline; 1 of these best programs is a model's own."})
    EXPECT_NE(page.find(words), std::string::npos) << words;
  EXPECT_LT(page.find("id=\"story\""), page.find("<table"));
  r.candidates[0].origin = "dataset";
  EXPECT_NE(html(r).find("; 0 of these best programs are a model's own."), std::string::npos);
  r.devices[0].kind = "H100";
  EXPECT_EQ(html(r).find("say nothing about a GPU"), std::string::npos);
}

TEST(Story, NamesTheBuildsThatRanIt) {
  store::Results r = example();
  r.provenance = R"({"seed": 7})";
  EXPECT_NE(html(r).find(" Seed 7. Warpsmith 0.1.0. <a"), std::string::npos) << "an old run does not say it";
  r.provenance =
      R"({"builds": [{"version": "0.1.0", "commit": "0a1b2c3d", "torch": "2.11.0", "cuda": "13.0"}]})";
  EXPECT_NE(html(r).find(" Warpsmith 0.1.0, commit 0a1b2c3d, torch 2.11.0, CUDA 13.0. <a"),
            std::string::npos);
  r.provenance = R"({"builds": [{"version": "0.1.0"}, {"version": "0.2.0", "commit": "<b>-dirty"}]})";
  EXPECT_NE(html(r).find(" Warpsmith 0.1.0; then 0.2.0, commit &lt;b&gt;-dirty. <a"), std::string::npos);
  for (const char* odd : {R"({"builds": 3})", R"({"builds": [4, {"commit": 5}]})", R"({"builds": []})"}) {
    r.provenance = odd;
    EXPECT_NE(html(r).find(" Warpsmith 0.1.0. <a"), std::string::npos) << odd;
  }
}

TEST(DevicesOfAPage, EqualRowsAreOne) {
  store::Results r = example();
  for (int i = 0; i < 30; ++i) r.devices.push_back(r.devices[0]);
  r.devices.push_back(r.devices[0]);
  r.devices.back().host = "there";
  const std::string page = html(r);
  const std::size_t at = page.find("id=\"devices\"");
  const std::string table = page.substr(at, page.find("</table>", at) - at);
  std::size_t rows = 0;
  for (std::size_t i = table.find("<tr><th>cpu"); i != std::string::npos;
       i = table.find("<tr><th>cpu", i + 1))
    ++rows;
  EXPECT_EQ(rows, 2u);
}

}  // namespace
}  // namespace warpsmith::report
