#include "warpsmith/report/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/report/kernelbench.h"

namespace warpsmith::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A run on one kind of device.
class RunOf {
 public:
  explicit RunOf(const std::string& name, const std::string& device = "H100") {
    results.run = name;
    results.devices.resize(1);
    results.devices[0].kind = device;
    results.devices[0].name = "NVIDIA " + device;
    store::StageRow stage;
    stage.name = "s";
    stage.hash8 = "0a1b2c3d";
    stage.device = device;
    stage.current = true;
    results.stages.push_back(stage);
  }
  RunOf& measured(const std::string& task, const std::string& candidate, double speedup,
                  Verdict verdict = Verdict::kOk, const std::string& baseline = "eager") {
    store::MeasurementRow row;
    row.stage = "s";
    row.hash8 = "0a1b2c3d";
    Measurement& m = row.value;
    m.task = task;
    m.candidate = candidate;
    m.verdict = verdict;
    m.baseline = baseline;
    m.math = "strict";
    m.shape = {{"N", 1024}};
    m.speedup = speedup;
    m.speedup_low = speedup / 1.01;
    m.speedup_high = speedup * 1.01;
    row.device = verdict == Verdict::kNotMeasured ? -1 : 0;
    results.measurements.push_back(row);
    return *this;
  }
  RunOf& broken(const std::string& task, const std::string& candidate) {
    store::CandidateRow row;
    row.id = candidate;
    row.task = task;
    results.candidates.push_back(row);
    store::CompileRow compile;
    compile.candidate = candidate;
    compile.stage = "s";
    compile.hash8 = "0a1b2c3d";
    compile.verdict = "compile_error";
    results.compiles.push_back(compile);
    return *this;
  }
  Side side() const { return side_of(results); }
  store::Results results;
};

// "task A B ratio" a row; "~": no such side.
std::vector<std::string> told(const Pairing& pairing) {
  std::vector<std::string> out;
  const auto text = [](const std::optional<Scored>& s) { return s ? s->text() : std::string("~"); };
  for (const Pair& p : pairing.rows)
    out.push_back(p.task + " | " + text(p.a) + " | " + text(p.b) + " | " +
                  (p.ratio ? std::to_string(p.ratio->value).substr(0, 4) : "-"));
  return out;
}

TEST(Compare, PairsTheFastestCorrectProgramOfEachTask) {
  RunOf a("a"), b("b");
  a.measured("add", "p1", 1.5).measured("add", "p2", 2).measured("gelu", "p3", 4).measured("old", "p4", 1);
  b.measured("add", "p5", 3).measured("gelu", "p6", 2).measured("gelu", "p7", 9, Verdict::kWrongOutput);
  b.measured("new", "p8", 1);
  const RunComparison c = compare_sides(a.side(), b.side());
  EXPECT_THAT(told(c.tasks),
              ElementsAre("add | 2.00× [1.98, 2.02] | 3.00× [2.97, 3.03] | 1.50",
                          "gelu | 4.00× [3.96, 4.04] | 2.00× [1.98, 2.02] | 0.50",
                          "new | ~ | 1.00× [0.99, 1.01] | -", "old | 1.00× [0.99, 1.01] | ~ | -"));
  EXPECT_EQ(c.tasks.paired, 2u);
  EXPECT_EQ(c.tasks.only_a, 1u);
  EXPECT_EQ(c.tasks.only_b, 1u);
  EXPECT_NEAR(*c.tasks.geometric_mean, std::sqrt(0.75), 1e-12);
  EXPECT_NEAR(*c.tasks.median, 1.0, 1e-12);
  EXPECT_EQ(c.tasks.faster, 1u);
  EXPECT_EQ(c.tasks.slower, 1u);
  EXPECT_THAT(c.programs.rows, IsEmpty());
  EXPECT_THAT(c.notes, IsEmpty());
}

// Half widths of the logarithms add as squares: each side's is log 1.01.
TEST(Compare, TheRatiosIntervalHoldsBothSides) {
  RunOf a("a"), b("b");
  a.measured("add", "p1", 2).measured("gelu", "p2", 2);
  b.measured("add", "p3", 2.02).measured("gelu", "p4", 2.04);
  const Pairing tasks = compare_sides(a.side(), b.side()).tasks;
  EXPECT_NEAR(tasks.rows[0].ratio->high, 1.01 * std::exp(std::sqrt(2) * std::log(1.01)), 1e-12);
  EXPECT_FALSE(tasks.rows[0].significant()) << "1.01 within 1.4 %";
  EXPECT_TRUE(tasks.rows[1].significant()) << "1.02 is not";
  EXPECT_EQ(tasks.faster, 1u);
}

TEST(Compare, TellsWhoseVerdictChanged) {
  RunOf a("a"), b("b");
  a.measured("add", "p1", 2)
      .measured("gelu", "p2", 0, Verdict::kCrash)
      .measured("mul", "p3", 0, Verdict::kCrash);
  b.measured("add", "p1", 0, Verdict::kWrongOutput).measured("gelu", "p2", 2).broken("mul", "p3");
  const RunComparison c = compare_sides(a.side(), b.side());
  for (const Pairing* p : {&c.tasks, &c.programs}) {
    EXPECT_THAT(told(*p),
                ElementsAre("add | 2.00× [1.98, 2.02] | wrong_output | -",
                            "gelu | crash | 2.00× [1.98, 2.02] | -", "mul | crash | compile_error | -"));
    EXPECT_TRUE(p->rows[0].no_longer_ok());
    EXPECT_TRUE(p->rows[1].now_ok());
    EXPECT_TRUE(p->rows[2].changed());
    EXPECT_FALSE(p->rows[2].now_ok() || p->rows[2].no_longer_ok());
    EXPECT_EQ(p->ratios, 0u);
    EXPECT_FALSE(p->geometric_mean);
  }
  const Json json = run_comparison_json(c);
  EXPECT_EQ(json.at("tasks").at("no_longer_ok"), Json::array({"add"}));
  EXPECT_EQ(json.at("programs").at("now_ok"), Json::array({"p2"}));
}

TEST(Compare, ProgramsThatBothMeasuredByTheLastMeasurement) {
  RunOf a("a"), b("b");
  a.measured("add", "p1", 5).measured("add", "p1", 2).measured("add", "p2", 3);
  b.measured("add", "p1", 4).measured("add", "p3", 8).measured("add", "p1", 0, Verdict::kNotMeasured);
  const RunComparison c = compare_sides(a.side(), b.side());
  EXPECT_THAT(told(c.programs), ElementsAre("add | 2.00× [1.98, 2.02] | 4.00× [3.96, 4.04] | 2.00"));
  EXPECT_THAT(told(c.tasks), ElementsAre("add | 5.00× [4.95, 5.05] | 8.00× [7.92, 8.08] | 1.60"));
}

TEST(Compare, OtherDevicesAndBaselinesArePairedWithNothing) {
  RunOf a("a"), on_l40("b", "L40"), over_cudnn("b");
  a.measured("add", "p1", 2);
  on_l40.measured("add", "p1", 2);
  over_cudnn.measured("add", "p1", 2, Verdict::kOk, "cudnn");
  RunComparison c = compare_sides(a.side(), on_l40.side());
  EXPECT_EQ(c.tasks.paired, 0u);
  EXPECT_THAT(c.tasks.apart, ElementsAre("add: A on H100 over eager, B on L40 over eager"));
  EXPECT_THAT(c.programs.apart, ElementsAre("add: A on H100 over eager, B on L40 over eager"));
  EXPECT_THAT(c.notes, ElementsAre(HasSubstr("different models: A on NVIDIA H100; B on NVIDIA L40")));
  c = compare_sides(a.side(), over_cudnn.side());
  EXPECT_EQ(c.tasks.paired, 0u);
  EXPECT_THAT(c.tasks.apart, ElementsAre("add: A on H100 over eager, B on H100 over cudnn"));
}

TEST(Compare, EachDeviceAndBaselineIsARowOfItsOwn) {
  RunOf a("a"), b("b");
  a.measured("add", "p1", 2).measured("add", "p1", 3, Verdict::kOk, "cudnn");
  b.measured("add", "p1", 1, Verdict::kOk, "cudnn").measured("add", "p1", 4);
  const Pairing tasks = compare_sides(a.side(), b.side()).tasks;
  ASSERT_EQ(tasks.rows.size(), 2u);
  EXPECT_EQ(tasks.rows[0].baseline, "cudnn");
  EXPECT_NEAR(tasks.rows[0].ratio->value, 1.0 / 3, 1e-12);
  EXPECT_NEAR(tasks.rows[1].ratio->value, 2, 1e-12);
}

TEST(Compare, OtherShapesAndOtherArithmeticHaveNoRatio) {
  RunOf a("a"), b("b");
  a.measured("add", "p1", 2).measured("mul", "p2", 2);
  b.measured("add", "p1", 2).measured("mul", "p2", 2);
  b.results.measurements[0].value.shape = {{"N", 2048}};
  b.results.measurements[1].value.math = "torch_default";
  const Pairing tasks = compare_sides(a.side(), b.side()).tasks;
  EXPECT_EQ(tasks.paired, 2u);
  EXPECT_EQ(tasks.ratios, 0u);
  EXPECT_EQ(tasks.rows[0].why, "timing shape differs: N=1024, N=2048");
  EXPECT_EQ(tasks.rows[1].why, "arithmetic differs: strict, torch_default");
}

// A compilation happens on no device: its stage says which one it was for.
TEST(Compare, AFailureOnAnUnknownDeviceCountsWhereTheTaskWasMet) {
  RunOf a("a"), b("b");
  a.measured("add", "p1", 2);
  b.broken("add", "p1");
  b.results.stages[0].device.clear();
  b.measured("mul", "p9", 1);
  a.measured("mul", "p9", 1);
  const Pairing tasks = compare_sides(a.side(), b.side()).tasks;
  ASSERT_EQ(tasks.rows.size(), 2u) << testing::PrintToString(told(tasks));
  EXPECT_TRUE(tasks.rows[0].no_longer_ok());
}

TEST(Compare, AReplayedRunIsMarked) {
  RunOf a("a"), b("b");
  b.results.provenance = R"({"replay_timings": "a"})";
  EXPECT_THAT(compare_sides(a.side(), b.side()).notes, ElementsAre(HasSubstr("b: its scores were taken")));
}

TEST(Compare, CsvHasEveryRow) {
  RunOf a("a"), b("b");
  a.measured("add", "p1", 2).measured("old", "p2", 1);
  b.measured("add", "p3", 4);
  const std::string csv = run_comparison_csv(compare_sides(a.side(), b.side()), false);
  EXPECT_THAT(csv, HasSubstr("\nadd,,H100,eager,p1,ok,2,"));
  EXPECT_THAT(csv, HasSubstr(",p3,ok,4,"));
  EXPECT_THAT(csv, HasSubstr(",2,1.97"));
  EXPECT_THAT(csv, HasSubstr(",1,\n")) << "significant, and no reason why not";
  EXPECT_THAT(csv, HasSubstr("\nold,,H100,eager,p2,ok,1,"));
  const auto commas = [](const std::string& line) { return std::count(line.begin(), line.end(), ','); };
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) EXPECT_EQ(commas(line), 18) << line;
}

TEST(KernelBenchProblem, IsToldByTheTasksId) {
  EXPECT_EQ(kernelbench_problem("level1_19_ReLU")->file, "19_ReLU.py");
  EXPECT_EQ(kernelbench_problem("level1_1_Square_matrix_multiplication_")->file,
            "1_Square_matrix_multiplication_.py");
  EXPECT_EQ(kernelbench_problem("cuda_l1_level3_4_LeNet5")->level, 3);
  EXPECT_EQ(kernelbench_problem("cuda_l1_level3_4_LeNet5")->number, 4);
  EXPECT_EQ(kernelbench_problem("level2_7")->file, "7.py");
  for (const char* none : {"row_softmax", "level1", "level1_relu", "mylevel1_2_x", "level_1_2", ""})
    EXPECT_FALSE(kernelbench_problem(none)) << none;
}

class PublishedFiles : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) {
    write_file_atomic(scratch_ / name, text);
    return scratch_ / name;
  }
  // What is wrong with `text`, and the code that the program ends with.
  std::string refused(const std::string& text, PublishedHints hints = {}) {
    try {
      read_published(write("bad.json", text), hints);
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code(), kExitUsage) << e.what();
      return e.what();
    }
    return "it was read";
  }
  // A run on an H100 with problem 19 of level 1, timed over eager and torch.compile.
  RunOf run() {
    RunOf run("mine");
    run.measured("level1_19_ReLU", "p1", 2);
    store::TaskRow task;
    task.id = "level1_19_ReLU";
    run.results.tasks.push_back(task);
    store::CandidateRow candidate;
    candidate.id = "p1";
    candidate.task = task.id;
    candidate.source = "class ModelNew: pass\n";
    run.results.candidates.push_back(candidate);
    for (const char* name : {"eager", "torch_compile"}) {
      store::BaselineRow row;
      row.stage = "s";
      row.hash8 = "0a1b2c3d";
      row.value.task = task.id;
      row.value.name = name;
      row.value.state = BaselineState::kCovered;
      row.value.device_kind = "H100";
      row.value.ratio = std::string(name) == "eager" ? 1 : 1.6;
      row.value.low = row.value.ratio / 1.01;
      row.value.high = row.value.ratio * 1.01;
      run.results.baselines.push_back(row);
    }
    return run;
  }
  Scratch scratch_;
};

constexpr const char* kRelease =
    R"({"level_id": "1", "task_id": "19", "ref_code": "", "custom_code": "class ModelNew: pass", )"
    R"("score_default": "3.0", "score_torch_compile_default": "1.25", "score_cudnn": "5"})"
    "\n"
    R"({"level_id": 1, "task_id": 20, "custom_code": "None", "score_default": "7.5"})"
    "\n"
    R"({"level_id": 2, "task_id": 3, "custom_code": null, "score_default": null})";

TEST_F(PublishedFiles, TheReleaseOfCudaL1) {
  const Published p = read_published(write("h100.json", kRelease), {});
  EXPECT_EQ(p.device, "h100");
  ASSERT_EQ(p.scores.size(), 15u);
  EXPECT_EQ(p.scores[0].speedup, 3.0);
  EXPECT_EQ(p.scores[1].baseline, "torch_compile");
  EXPECT_EQ(p.scores[1].speedup, 1.25);
  EXPECT_EQ(p.scores[2].note, "no score");
  EXPECT_EQ(p.scores[5].note, "no kernel") << "a score without a kernel counts as none";
  EXPECT_FALSE(p.scores[5].speedup);
  EXPECT_EQ(p.scores[10].number, 3) << "the last line has no newline";
}

TEST_F(PublishedFiles, TheReleaseOfCudaL1AsListsByLevel) {
  const std::filesystem::path file =
      write("h100.json",
            R"({"1": [{"task_id": 19, "ref_code": "r", "custom_code": "k", "score": "1.5"}], "2": []})");
  const Published p = read_published(file, {});
  ASSERT_EQ(p.scores.size(), 5u);
  EXPECT_EQ(p.scores[0].speedup, 1.5);
  EXPECT_EQ(p.scores[0].number, 19);
  EXPECT_EQ(p.scores[1].note, "no score");
}

// A bad record costs the others nothing.
TEST_F(PublishedFiles, RecordsOfTheReleaseWithTheirPlaces) {
  Diagnostics mistakes;
  std::vector<ReleaseRecord> records =
      read_release(write("h100.json", std::string(kRelease) + "\n\n{\"level_id\": 1, \n" +
                                          R"({"level_id": 1, "task_id": 2, "custom_code": 7})"),
                   mistakes);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].place, "line 1");
  EXPECT_EQ(records[0].scores,
            (std::map<std::string, double>{{"eager", 3}, {"torch_compile", 1.25}, {"cudnn", 5}}));
  EXPECT_EQ(records[1].missing, "custom_code is the text None");
  EXPECT_EQ(records[1].scores.at("eager"), 7.5);
  EXPECT_EQ(records[2].missing, "custom_code is null");
  ASSERT_EQ(mistakes.size(), 2u);
  EXPECT_EQ(mistakes[0].line, 5);
  EXPECT_EQ(mistakes[1].message, "`custom_code` is no text");
  records = read_release(
      write("l40.json", R"({"3": [{"task_id": 4, "custom_code": ""}, 5, {"task_id": "x"}]})"), mistakes);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].place, "level 3, record 1");
  EXPECT_EQ(records[0].missing, "custom_code is empty");
  ASSERT_EQ(mistakes.size(), 4u);
  EXPECT_THAT(mistakes[3].message, HasSubstr("level 3, record 3: `task_id` is no number"));
}

TEST_F(PublishedFiles, StandBesideTheRunsOwnProblemsAndAreNeverSignificant) {
  const RunOf a = run();
  const Published p = read_published(write("h100.json", kRelease), {});
  const Side published = side_of(p, "h100.json", a.results);
  const RunComparison c = compare_sides(side_of(a.results, Over::kAll), published);
  EXPECT_THAT(
      told(c.tasks),
      ElementsAre("level1/20 | ~ | no kernel | -", "level1_19_ReLU | 2.00× [1.98, 2.02] | 3.00× | 1.50",
                  "level1_19_ReLU | 1.25× [1.23, 1.27] | 1.25× | 1.00", "level2/3 | ~ | no kernel | -"))
      << "over cudnn the run has nothing";
  EXPECT_THAT(told(c.programs), testing::SizeIs(2)) << "the kernel's text is the candidate's";
  EXPECT_EQ(c.tasks.faster + c.tasks.slower, 0u);
  for (const Pair& pair : c.tasks.rows) {
    EXPECT_FALSE(pair.significant() || pair.changed());
    EXPECT_FALSE(pair.has_interval);
  }
  ASSERT_FALSE(c.notes.empty());
  EXPECT_THAT(c.notes.front(), HasSubstr("no interval and no verdict"));
  EXPECT_EQ(run_comparison_json(c).at("published"), true);
}

TEST_F(PublishedFiles, OfAnotherDevicePairWithNothing) {
  const RunOf a = run();
  const Published p = read_published(write("l40.json", kRelease), {});
  const Pairing tasks = compare_sides(side_of(a.results), side_of(p, "l40.json", a.results)).tasks;
  EXPECT_EQ(tasks.paired, 0u);
  EXPECT_THAT(tasks.apart, ElementsAre(HasSubstr("A on H100 over eager, B on l40 over eager")));
  EXPECT_EQ(compare_sides(side_of(a.results), side_of(p, "l40.json", a.results, "H100")).tasks.paired, 1u);
}

TEST_F(PublishedFiles, DevicesAreMatchedHoweverTheyAreWritten) {
  RunOf a("a", "RTX3090");
  a.measured("level1_19_ReLU", "p1", 2);
  a.results.tasks.resize(1);
  a.results.tasks[0].id = "level1_19_ReLU";
  const Published p = read_published(write("3090.json", kRelease), {});
  EXPECT_EQ(compare_sides(a.side(), side_of(p, "3090.json", a.results)).tasks.paired, 1u);
}

constexpr const char* kEvaluation = R"({
  "19": [{"sample_id": 0, "compiled": true, "correctness": true, "runtime": 2.0,
          "runtime_stats": {"hardware": "NVIDIA H100 80GB HBM3"}, "metadata": {}},
         {"sample_id": 1, "compiled": true, "correctness": true, "runtime": 1.0, "runtime_stats": {}},
         {"sample_id": 2, "compiled": true, "correctness": false, "runtime": 0.1, "runtime_stats": {}}],
  "20": [{"sample_id": 0, "compiled": false, "correctness": false, "runtime": -1, "runtime_stats": {}}],
  "21": {"sample_id": 0, "compiled": true, "correctness": true, "runtime": 4.0, "ref_runtime": 6.0},
  "22": []})";

TEST_F(PublishedFiles, TheEvaluatorOfKernelBench) {
  const auto times = write("baseline_time_torch.json",
                           R"({"level1": {"19_ReLU.py": {"mean": 3.0}, "1_x.py": {"mean": 9}}})");
  const Published p =
      read_published(write("eval_results.json", kEvaluation), {.level = 1, .baseline_times = times});
  EXPECT_EQ(p.device, "NVIDIA H100 80GB HBM3");
  ASSERT_EQ(p.scores.size(), 4u);
  EXPECT_EQ(p.scores[0].speedup, 3.0) << "the fastest correct sample";
  EXPECT_EQ(p.scores[0].baseline, "eager");
  EXPECT_EQ(p.scores[1].note, "incorrect");
  EXPECT_EQ(p.scores[2].speedup, 1.5) << "by its own ref_runtime";
  EXPECT_FALSE(p.scores[3].speedup);
  const RunOf a = run();
  const RunComparison c = compare_sides(side_of(a.results, Over::kAll), side_of(p, "theirs", a.results));
  EXPECT_EQ(c.tasks.paired, 1u);
  EXPECT_NEAR(*c.tasks.geometric_mean, 1.5, 1e-12);
}

TEST_F(PublishedFiles, TimesOfTorchCompileAreThatBaseline) {
  const auto times = write("baseline_time_torch_compile_inductor_default.json",
                           R"({"level1": {"19_ReLU.py": {"mean": 3.0}}})");
  const auto file = write("eval_results.json", kEvaluation);
  EXPECT_EQ(read_published(file, {.level = 1, .baseline_times = times}).scores[0].baseline, "torch_compile");
  const Published without = read_published(file, {.level = 1, .baseline_times = {}});
  EXPECT_EQ(without.scores[0].note, "no time of a baseline");
}

TEST_F(PublishedFiles, DamagedTimesOfABaseline) {
  const auto file = write("eval_results.json", kEvaluation);
  const auto read = [&](const std::string& text) {
    return read_published(file, {.level = 1, .baseline_times = write("baseline_time_torch.json", text)});
  };
  for (const char* text : {R"({"level1": {"19_ReLU.py": {}}})", R"({"level1": {"19_ReLU.py": 3}})", "[]",
                           "{}", R"({"level1": []})", R"({"level1": {"19_ReLU.py": {"mean": "x"}}})"})
    EXPECT_EQ(read(text).scores[0].note, "no time of a baseline") << text;
  try {
    read("{");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), kExitUsage);
    EXPECT_THAT(e.what(), HasSubstr("baseline_time_torch.json"));
  }
}

TEST_F(PublishedFiles, WhatIsNoneOfThemIsAMistake) {
  for (const char* text : {"", "{}", "[]", "3", "hello", R"({"19": 3})", R"({"19": [3]})", R"({"x": []})",
                           R"({"level_id": 1})", "\0\xff"})
    EXPECT_THAT(refused(text, {.level = 1, .baseline_times = {}}), HasSubstr("no published scores")) << text;
  EXPECT_THAT(refused(kEvaluation), HasSubstr("give --level"));
  EXPECT_THAT(refused(std::string(kRelease) + "\n{\"level_id\": 1}\n"), HasSubstr("line 4: "));
  EXPECT_THAT(refused(std::string(kRelease) + "\n{\"level_id\": 1, \"ta"), HasSubstr("line 4: "));
  EXPECT_THAT(refused(R"({"level_id": "x", "task_id": 2})"), HasSubstr("`level_id` is no number"));
  EXPECT_THAT(refused(std::string(300, '[')), HasSubstr("no published scores"));
}

}  // namespace
}  // namespace warpsmith::report
