// What the stages changed: pass@k, paired changes, the plots, and what a novel program cost.
#include "warpsmith/report/learning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/report/cost.h"
#include "warpsmith/report/report.h"

namespace warpsmith::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kTasks[] = {"a", "b", "c", "d", "e", "f"};

class Learned : public ::testing::Test {
 protected:
  void stage(const std::string& name, const std::string& kind, const std::string& base = "") {
    store::StageRow row;
    row.name = name;
    row.base = base.empty() ? name : base;
    row.kind = kind;
    row.hash8 = "0a1b2c3d";
    row.place = static_cast<std::int64_t>(results_.stages.size());
    row.current = true;
    results_.stages.push_back(row);
  }
  store::SampleRow& sample(const std::string& stage, const std::string& task, double speedup,
                           const std::string& group = "heldout_length") {
    const std::string id = stage + task + std::to_string(results_.generated.size());
    results_.generated.push_back(
        {stage, "0a1b2c3d", task, group, id, speedup > 0 ? "ok" : "wrong_output", 0, speedup});
    return results_.generated.back();
  }
  // Six tasks, four samples each from two checkpoints: one sample is a known program at 8x, and one more of
  // the second checkpoint is right, at 2x.
  void two_checkpoints() {
    for (const char* name : {"sft", "rl"}) stage(name, "sft");
    for (const char* name : {"evaluate-sft", "evaluate-rl"}) stage(name, "measure", "evaluate");
    for (const char* name : {"warm-0.2", "warm-0.8"}) stage(name, "measure", "warm");
    for (const store::StageRow& row : results_.stages)
      for (const char* task : kTasks)
        for (int i = 0; i < 4; ++i) {
          const bool more = i == 1 && row.name == "evaluate-rl";
          sample(row.name, task, i == 0 ? 8 : more ? 2 : 0).known = i == 0;
        }
  }
  store::AttemptRow& attempt(const std::string& stage, const std::string& job, double wall_s,
                             std::int64_t gpus = 0) {
    store::AttemptRow& row = results_.attempts.emplace_back();
    row.stage = stage;
    row.hash8 = "0a1b2c3d";
    row.job = job;
    row.wall_s = row.cpu_s = wall_s;
    row.cpus = 1;
    row.gpus = gpus;
    return row;
  }
  store::ShardRow& shard(const std::string& stage, const std::string& job) {
    store::ShardRow& row = results_.shards.emplace_back();
    row.stage = stage;
    row.hash8 = "0a1b2c3d";
    row.job = job;
    return row;
  }
  Json exported() const { return Json::parse(json(results_)); }

  store::Results results_;
};

std::vector<std::int64_t> known_ks(const std::vector<PassAtK>& passes) {
  std::vector<std::int64_t> ks;
  for (const PassAtK& pass : passes)
    if (pass.value) ks.push_back(pass.k);
  return ks;
}

TEST_F(Learned, IsComparedTaskByTask) {
  two_checkpoints();
  const std::vector<LearningRow> rows = learning_rows(frozen_models(results_));
  ASSERT_EQ(rows.size(), 1u) << "only instances of one matrix are compared";
  EXPECT_EQ(rows[0].before, "evaluate-sft");
  EXPECT_EQ(rows[0].after, "evaluate-rl");
  EXPECT_EQ(rows[0].group, "heldout_length");
  EXPECT_EQ(rows[0].tasks, 6);
  EXPECT_DOUBLE_EQ(rows[0].valid.estimate, 0.25);
  EXPECT_DOUBLE_EQ(rows[0].novel.low, 0.25) << "all tasks gain the same";
  ASSERT_TRUE(rows[0].novel_draw.has_value());
  EXPECT_NEAR(rows[0].novel_draw->estimate, std::pow(2.0, 0.25), 1e-12);
  ASSERT_EQ(rows[0].fast_novel.size(), 1u) << "of four samples k is 1 at most";
  EXPECT_DOUBLE_EQ(rows[0].fast_novel[0].change.estimate, 0.25);
  EXPECT_THAT(html(results_), HasSubstr("+25.0 <small>[+25.0, +25.0]</small>"));
  const Json row = exported().at("learning").at(0);
  EXPECT_EQ(row.at("tasks"), 6);
  EXPECT_EQ(row.at("pass_novel_above_1_01").at("1").at("low"), 0.25);
  EXPECT_EQ(row.at("novel").at("high"), 0.25);
}

TEST_F(Learned, WhatWasNotMeasuredIsToldByRound) {
  two_checkpoints();
  EXPECT_THAT(html(results_), Not(HasSubstr("id=\"skips\"")));
  Json skip = {
      {"guessed", 40},    {"skipped", 18},    {"blind", 2}, {"right", 22}, {"rank_correlation", 0.456},
      {"blind_right", 2}, {"lost_share", 0.5}};
  Json none = {{"round", 1}, {"guessed", 0}, {"note", "<few>"}};
  skip["rounds"] = {none, skip};
  skip["rounds"][1]["round"] = 2;
  results_.stages[1].summary = Json{{"skip", skip}}.dump();
  const std::string page = html(results_);
  EXPECT_THAT(page, HasSubstr("<th>rl, round 1</th><td>0</td><td>0</td><td>0</td><td>–</td><td>–</td>"
                              "<td>–</td><td>&lt;few&gt;</td>"));
  EXPECT_THAT(page, HasSubstr("<th>rl, round 2</th><td>40</td><td>18</td><td>2</td>"
                              "<td>0.46 <small>of 22</small></td><td>–</td><td>50.0 %</td><td></td>"));
  EXPECT_THAT(page, HasSubstr("<th>rl, all rounds</th><td>40</td>"));
  EXPECT_EQ(exported().at("stages").at(1).at("summary").at("skip").at("skipped"), 18);
  results_.stages[1].summary = R"({"skip": {"guessed": "x"}})";
  EXPECT_THAT(html(results_), Not(HasSubstr("id=\"skips\""))) << "a damaged file is no reason to fail";
  results_.stages[1].summary = Json{{"skip", skip}}.dump();
  results_.stages[1].current = false;
  EXPECT_THAT(html(results_), Not(HasSubstr("id=\"skips\"")));
}

// The interval of a difference is that of the differences, not of two means.
TEST_F(Learned, ChangesArePaired) {
  stage("sft", "sft");
  stage("rl", "contrastive");
  for (const char* name : {"evaluate-sft", "evaluate-rl"}) stage(name, "measure", "evaluate");
  for (int task = 0; task < 6; ++task)
    for (int i = 0; i < 10; ++i) {
      sample("evaluate-sft", kTasks[task], i < task ? 2 : 0);
      sample("evaluate-rl", kTasks[task], i < task + 1 ? 2 : 0);
    }
  const std::vector<LearningRow> rows = learning_rows(frozen_models(results_));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_NEAR(rows[0].novel.low, 0.1, 1e-12) << "tasks differ, and each gains one of ten";
  EXPECT_NEAR(rows[0].novel.high, 0.1, 1e-12);
  ASSERT_EQ(rows[0].fast_novel.size(), 2u);
  EXPECT_EQ(rows[0].fast_novel[1].k, 8);
  EXPECT_LT(rows[0].fast_novel[1].change.low, rows[0].fast_novel[1].change.high);
}

TEST_F(Learned, OlderVersionsAndOtherTasksAreNotCompared) {
  two_checkpoints();
  for (store::SampleRow& row : results_.generated)
    if (row.stage == "evaluate-sft") row.hash8 = "99999999";
  EXPECT_THAT(learning_rows(frozen_models(results_)), IsEmpty());
  results_ = {};
  two_checkpoints();
  for (store::SampleRow& row : results_.generated)
    if (row.stage == "evaluate-sft" && row.task < "c") row.task += "x";
  EXPECT_THAT(learning_rows(frozen_models(results_)), IsEmpty()) << "four tasks in common are too few";
}

TEST_F(Learned, PassAtKIsOfRightAndOfFastNovelPrograms) {
  stage("evaluate", "measure");
  for (const char* task : kTasks)
    for (int i = 0; i < 32; ++i) sample("evaluate", task, i < 3 ? 2 : i == 3 ? 1.01 : 0).known = i < 2;
  const std::vector<PassRow> rows = pass_rows(frozen_models(results_));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].stage, "evaluate");
  EXPECT_EQ(rows[0].of, "") << "no matrix says which stage trained it";
  EXPECT_EQ(rows[0].tasks, 6);
  EXPECT_THAT(known_ks(rows[0].right), ElementsAre(1, 8, 32));
  EXPECT_DOUBLE_EQ(*rows[0].right[0].value, 4.0 / 32);
  EXPECT_DOUBLE_EQ(*rows[0].fast_novel[0].value, 1.0 / 32) << "two are known, and 1.01x is not above it";
  EXPECT_DOUBLE_EQ(*rows[0].fast_novel[1].value, 8.0 / 32);
  EXPECT_DOUBLE_EQ(*rows[0].right[2].value, 1);
  ASSERT_TRUE(rows[0].right[0].interval.has_value());
  EXPECT_DOUBLE_EQ(rows[0].right[0].interval->low, 4.0 / 32) << "all tasks are alike";
}

TEST_F(Learned, AKThatATaskHasTooFewSamplesForIsAbsent) {
  stage("evaluate", "measure");
  for (const char* task : kTasks)
    for (int i = 0; i < 8; ++i) sample("evaluate", task, 2);
  sample("evaluate", "a", 0).verdict = "unsupported";
  EXPECT_THAT(known_ks(pass_rows(frozen_models(results_))[0].right), ElementsAre(1, 8));
  EXPECT_THAT(exported().at("pass_at_k").at(0).at("right").at("absent"),
              Json::parse(R"({"32": "a task has fewer than 32 samples"})"));
  EXPECT_FALSE(exported().at("pass_at_k").at(0).at("right").contains("32"));
  results_.generated.front().verdict = "not_measured";  // seven of task a are left
  const PassRow row = pass_rows(frozen_models(results_))[0];
  EXPECT_THAT(known_ks(row.right), ElementsAre(1)) << "not the mean over the other five";
  EXPECT_EQ(row.least, 7);
  EXPECT_EQ(row.most, 8);
  EXPECT_EQ(row.right[1].tasks, 6);
  std::string page = html(results_);
  EXPECT_THAT(page, HasSubstr("<td>6</td><td>7–8</td><td>100.0 % <small>[100.0, 100.0]</small></td>"
                              "<td>100.0 % <small>[100.0, 100.0]</small></td></tr>"));
  EXPECT_THAT(page, HasSubstr("No pass@8: in each group a task has fewer than 8 samples."));
  for (int i = 0; i < 8; ++i) sample("evaluate", "t", 2, "train");
  page = html(results_);  // another group has so many
  EXPECT_THAT(page, HasSubstr("<td>–</td>"));
  EXPECT_THAT(page, Not(HasSubstr("No pass@8")));
  EXPECT_THAT(page, HasSubstr("No pass@32"));
}

TEST_F(Learned, FewTasksHaveNoIntervalAndTasksOfTheHostNoSpeed) {
  stage("evaluate", "measure");
  store::MeasurementRow measured;
  measured.value.verdict = Verdict::kOk;
  measured.value.speedup = 2;
  measured.value.host_bound = true;
  for (const char* task : {"a", "b"}) {
    measured.value.task = task;
    measured.value.candidate = sample("evaluate", task, 2).candidate;
    if (*task == 'a') results_.measurements.push_back(measured);
  }
  PassRow row = pass_rows(frozen_models(results_))[0];
  EXPECT_EQ(row.right[0].tasks, 2);
  EXPECT_FALSE(row.right[0].interval.has_value());
  EXPECT_EQ(row.fast_novel[0].tasks, 1) << "launches saved are no faster kernel";
  results_.measurements.push_back(measured);
  row = pass_rows(frozen_models(results_))[0];
  EXPECT_THAT(known_ks(row.fast_novel), IsEmpty());
  EXPECT_EQ(exported().at("pass_at_k").at(0).at("novel_above_1_01").at("absent").at("1"), "no task is left");
}

TEST_F(Learned, OnlyDrawsFromAFrozenModelCount) {
  stage("again", "measure");
  sample("again", "a", 2);
  EXPECT_EQ(pass_rows(frozen_models(results_)).size(), 1u);
  shard("again", "measure");  // none of its jobs drew
  EXPECT_THAT(pass_rows(frozen_models(results_)), IsEmpty());
  results_ = {};
  stage("sft", "self_supervised");
  sample("sft", "a", 2);
  EXPECT_THAT(pass_rows(frozen_models(results_)), IsEmpty());
}

std::string output_of(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  std::string out;
  char buffer[4096];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.append(buffer, n);
  ::pclose(pipe);
  return out;
}

TEST_F(Learned, ThePlotIsTheFirstOfThePageAndWellFormed) {
  two_checkpoints();
  for (const char* name : {"evaluate-sft", "evaluate-rl"})
    for (const char* task : {"t1", "t2"}) sample(name, task, 1.5, "train").of_template = true;
  const std::string page = html(results_);
  const auto plot = page.find("id=\"learning-evaluate\""), end = page.find("</div>", plot);
  ASSERT_NE(plot, std::string::npos);
  EXPECT_LT(plot, page.find("id=\"plot-fast-p\""));
  const std::string panels = page.substr(plot, end - plot);
  for (const char* text :
       {">sft</text>", ">rl</text>", "Valid: share", "Novel: share", "One draw of novel programs",
        "Novel, and not as a template", "trained tasks: 100.0 % [", "held out: longer chains: 50.0 % [",
        "held out: longer chains: 1.189× [1.189×, 1.189×]", "trained tasks: 1.500×</title>"})
    EXPECT_THAT(panels, HasSubstr(text));
  EXPECT_LT(page.find(">trained tasks</span>"), page.find(">held out: longer chains</span>"));
  EXPECT_THAT(page,
              HasSubstr("of the 8 novel programs drawn from the checkpoint of rl, 2 are what a template"));
  EXPECT_THAT(page, Not(HasSubstr("No plot of what the stages changed")));
  // Each panel is a picture of its own, which any reader of XML takes.
  const Scratch scratch;
  write_file_atomic(scratch / "page.html", page);
  write_file_atomic(scratch / "read.py",
                    "import re, sys\n"
                    "from xml.etree import ElementTree\n"
                    "page = open(sys.argv[1]).read()\n"
                    "panels = re.findall(r'<figure>.*?</figure>', page, re.S)\n"
                    "trees = [ElementTree.fromstring(p) for p in panels if '<svg' in p]\n"
                    "print(len(trees), [len(t.findall('.//path[@class=\"mark\"]')) for t in trees])\n");
  EXPECT_EQ(output_of("python3 " + (scratch / "read.py").string() + " " + (scratch / "page.html").string()),
            "7 [4, 4, 4, 4, 0, 0, 0]\n");
}

TEST_F(Learned, WithoutTwoCheckpointsASentenceStandsInThePlace) {
  EXPECT_THAT(html(results_),
              HasSubstr("by a stage `measure` with a matrix over them, and this run has none."));
  stage("sft", "sft");
  stage("evaluate-sft", "measure", "evaluate");
  for (const char* task : kTasks) sample("evaluate-sft", task, 2);
  const std::string page = html(results_);
  EXPECT_THAT(page, HasSubstr("and this run has those of one."));
  EXPECT_THAT(page, Not(HasSubstr("id=\"learning-evaluate\"")));
  EXPECT_THAT(page, Not(HasSubstr("<h3>What the stages changed</h3>")));
}

TEST_F(Learned, RoundsAreShownWhereThereAreSome) {
  stage("rl", "contrastive");
  for (std::int64_t round = 1; round <= 100; ++round)
    for (const char* task : kTasks) sample("rl", task, round > 50 ? 2 : 0, "train").round = round;
  const std::vector<RoundRow> rows = round_rows(results_);
  ASSERT_EQ(rows.size(), 34u) << "three at once";
  EXPECT_EQ(rows[0].first, 1);
  EXPECT_EQ(rows[0].last, 3);
  EXPECT_EQ(rows.back().last, 100);
  EXPECT_EQ(rows[0].figures.novel_draw, 1);
  EXPECT_DOUBLE_EQ(rows.back().figures.novel_draw, 2);
  EXPECT_THAT(html(results_), HasSubstr("id=\"rounds\""));
  EXPECT_THAT(html(results_), HasSubstr("A point is several rounds."));
  EXPECT_EQ(exported().at("rounds").at(33).at("rounds"), Json::parse("[100, 100]"));
  EXPECT_EQ(exported().at("rounds").at(33).at("novel_draw"), 2.0);
  for (store::SampleRow& row : results_.generated) row.round = 1;
  EXPECT_THAT(round_rows(results_), IsEmpty());
  EXPECT_THAT(html(results_), Not(HasSubstr("id=\"rounds\"")));
}

TEST_F(Learned, ALaterTurnIsNoDrawOfARound) {
  stage("rl", "contrastive");
  for (std::int64_t round = 1; round <= 2; ++round)
    for (const char* task : kTasks) {
      sample("rl", task, 0, "train").round = round;
      store::SampleRow& again = sample("rl", task, 2, "train");
      again.round = round;
      again.turn = 2;
    }
  const std::vector<RoundRow> rows = round_rows(results_);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].figures.samples, 6);
  EXPECT_EQ(rows[0].figures.valid, 0);
  EXPECT_EQ(rows[0].figures.novel_draw, 1);
  EXPECT_EQ(rows[0].figures.distinct, 1);
}

TEST_F(Learned, ANovelProgramHasItsCost) {
  stage("rl", "contrastive");
  stage("evaluate", "measure");
  sample("rl", "a", 2).candidate = "one";
  sample("rl", "a", 2).candidate = "one";
  sample("rl", "a", 3).known = true;
  sample("rl", "b", 1.005);
  sample("rl", "c", 1.5).of_template = true;
  sample("evaluate", "a", 2).candidate = "one";
  sample("evaluate", "d", 2);
  shard("rl", "generate").tokens = 1000;
  shard("rl", "generate").tokens = 500;
  shard("evaluate", "generate").tokens = 300;
  attempt("rl", "generate", 40, 1).shards_a_gpu = 2;
  attempt("rl", "compile", 30);
  attempt("rl", "measure", 10, 1);
  attempt("rl", "train", 50, 2);
  attempt("evaluate", "generate", 6, 1);
  attempt("sft", "train", 100, 1);
  attempt("rl", "train", 1000, 8).set_aside = true;
  const NovelCosts costs = novel_costs(results_);
  ASSERT_EQ(costs.stages.size(), 2u) << "sft drew nothing";
  const NovelCost& rl = costs.stages[0];
  EXPECT_EQ(rl.stage, "rl");
  EXPECT_EQ(rl.programs, 2);
  EXPECT_EQ(rl.of_template, 1);
  EXPECT_EQ(rl.tokens, 1500);
  EXPECT_DOUBLE_EQ(rl.gpu.generation, 20);
  EXPECT_DOUBLE_EQ(rl.gpu.measurement, 10);
  EXPECT_DOUBLE_EQ(rl.gpu.training, 100);
  EXPECT_DOUBLE_EQ(rl.gpu.compilation, 0);
  EXPECT_DOUBLE_EQ(rl.cpu.compilation, 30);
  EXPECT_EQ(rl.money, std::nullopt);
  EXPECT_EQ(costs.run.programs, 3) << "the one of both stages counts once";
  EXPECT_EQ(costs.run.tokens, 1800);
  EXPECT_DOUBLE_EQ(costs.run.gpu.all(), 130 + 6 + 100);
  const Json out = exported().at("novel_cost");
  EXPECT_EQ(out.at("stages").at(0).at("each").at("tokens"), 750.0);
  EXPECT_EQ(out.at("stages").at(0).at("each").at("gpu_s").at("all"), 65.0);
  EXPECT_EQ(out.at("stages").at(0).at("each").at("cpu_s").at("compilation"), 15.0);
  EXPECT_TRUE(out.at("run").at("each").at("money").is_null());
  const std::string page = html(results_);
  EXPECT_THAT(page, HasSubstr("<tr><th>rl</th><td>2 <small>1 as a template</small></td><td>750</td>"
                              "<td>65 <small>generation 10, measurement 5, training 50</small></td>"
                              "<td>15</td>"));
  EXPECT_THAT(page, HasSubstr("No money: the site has no prices"));
}

TEST_F(Learned, MoneyIsOfGpusAndServersAndSaysWhereItLacksSome) {
  stage("rl", "contrastive");
  sample("rl", "a", 2);
  sample("rl", "b", 2);
  attempt("rl", "generate", 3600, 1).money = 3;
  results_.stages[0].summary = R"({"server": {"money": 0.5, "completion_tokens": 9}})";
  NovelCost cost = novel_costs(results_).stages.at(0);
  EXPECT_EQ(cost.money, 3.5);
  EXPECT_TRUE(cost.all_priced);
  EXPECT_THAT(html(results_), HasSubstr("<td>1.75</td></tr>"));
  attempt("rl", "measure", 3600, 1);  // of a type without a price
  cost = novel_costs(results_).stages.at(0);
  EXPECT_EQ(cost.money, 3.5);
  EXPECT_FALSE(cost.all_priced);
  EXPECT_THAT(html(results_), HasSubstr("<td>over 1.75</td></tr>"));
  EXPECT_EQ(exported().at("novel_cost").at("run").at("each").at("money"), 1.75);
  EXPECT_EQ(exported().at("novel_cost").at("run").at("all_priced"), false);
}

TEST_F(Learned, MoneyHasTheCurrencyOfTheSite) {
  stage("rl", "contrastive");
  sample("rl", "a", 2);
  attempt("rl", "generate", 3600, 1).money = 3;
  std::string page = html(results_);  // a file without its run
  EXPECT_THAT(page, HasSubstr("<th>GPU-hours</th><th>money</th>"));
  EXPECT_THAT(page, HasSubstr("<th>CPU-seconds, the rest</th><th>money</th>"));
  EXPECT_TRUE(exported().at("currency").is_null());
  results_.currency = "<EUR>";
  page = html(results_);
  EXPECT_THAT(page, HasSubstr("<th>GPU-hours</th><th>money, &lt;EUR&gt;</th>"));
  EXPECT_THAT(page, HasSubstr("<th>CPU-seconds, the rest</th><th>money, &lt;EUR&gt;</th>"));
  EXPECT_EQ(exported().at("currency"), "<EUR>");
}

// Their money is counted, and so are their tokens; each stage says them when it ends.
TEST_F(Learned, TokensOfTeachersAndCheckersCount) {
  stage("collect", "collect");
  stage("rl", "contrastive");
  sample("rl", "a", 2);
  shard("collect", "ask-big").program = "warpsmith-generate";
  shard("rl", "generate").tokens = 1000;
  shard("rl", "check").program = "warpsmith-generate";
  results_.stages[0].summary = R"({"teachers": {"big": {"completion_tokens": 700, "prompt_tokens": 9}}})";
  results_.stages[1].summary =
      R"({"checker": {"completion_tokens": 30}, "server": {"completion_tokens": 1000}})";
  NovelCosts costs = novel_costs(results_);
  EXPECT_EQ(costs.run.tokens, 1730);
  EXPECT_EQ(costs.stages.at(0).tokens, 1030) << "those of the policy stand in its shards";
  results_.stages[0].summary.clear();
  costs = novel_costs(results_);
  EXPECT_EQ(costs.run.tokens, std::nullopt) << "the teacher is still being asked";
  EXPECT_EQ(costs.stages.at(0).tokens, 1030);
}

TEST_F(Learned, WhereThereIsNoProgramThereIsNoNumber) {
  stage("rl", "contrastive");
  sample("rl", "a", 1.005);
  sample("rl", "b", 5).known = true;
  sample("rl", "c", 5);
  store::TaskRow degenerate;
  degenerate.id = "c";
  degenerate.degenerate = "one constant passes";
  results_.tasks.push_back(degenerate);
  shard("rl", "generate").tokens = 1000;
  attempt("rl", "generate", 40, 1).money = 2;
  const NovelCosts costs = novel_costs(results_);
  EXPECT_EQ(costs.run.programs, 0);
  EXPECT_EQ(costs.run.each(7), std::nullopt);
  const Json out = exported().at("novel_cost").at("run");
  EXPECT_TRUE(out.at("each").is_null());
  EXPECT_EQ(out.at("tokens"), 1000) << "what was taken is known";
  EXPECT_THAT(html(results_),
              HasSubstr("<tr><th>rl</th><td>0</td><td>–</td><td>–</td><td>–</td><td>–</td><td>–</td></tr>"));
  EXPECT_EQ(html(store::Results{}).find("id=\"novel-cost\""), std::string::npos);
}

TEST_F(Learned, TokensOfOlderFilesAreNotKnown) {
  stage("rl", "contrastive");
  sample("rl", "a", 2);
  shard("rl", "generate").tokens = 1000;
  shard("rl", "generate");
  EXPECT_EQ(novel_costs(results_).run.tokens, std::nullopt);
  EXPECT_TRUE(exported().at("novel_cost").at("run").at("each").at("tokens").is_null());
}

// Jobs of later turns are named "generate-2", ….
TEST_F(Learned, LaterTurnsArePartOfTheCost) {
  stage("rl", "contrastive");
  sample("rl", "a", 1.005);
  sample("rl", "a", 2).turn = 2;
  shard("rl", "generate").tokens = 1000;
  shard("rl", "generate-2").tokens = 500;
  for (const char* job : {"generate", "generate-2", "compile", "compile-2", "measure", "measure-2"})
    attempt("rl", job, 10, *job == 'c' ? 0 : 1);
  const NovelCosts costs = novel_costs(results_);
  const NovelCost& rl = costs.stages.at(0);
  EXPECT_EQ(rl.programs, 1) << "a program of a later turn is one, too";
  EXPECT_EQ(rl.tokens, 1500);
  EXPECT_DOUBLE_EQ(rl.gpu.generation, 20);
  EXPECT_DOUBLE_EQ(rl.gpu.measurement, 20);
  EXPECT_DOUBLE_EQ(rl.cpu.compilation, 20);
  EXPECT_DOUBLE_EQ(rl.gpu.other + rl.cpu.other, 0);
  results_.shards.back().tokens.reset();
  EXPECT_EQ(novel_costs(results_).run.tokens, std::nullopt);
}

}  // namespace
}  // namespace warpsmith::report
