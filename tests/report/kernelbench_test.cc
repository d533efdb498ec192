// Files for KernelBench, read back as its scripts read them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <regex>

#include "scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/report/kernelbench.h"
#include "warpsmith/report/published.h"

namespace warpsmith::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What KernelBench's analysis of a run makes of the files in `folder`: it goes through the problems of the
// level, takes sample 0 of each, and counts a problem without one as a failure; problems without a time of
// the baseline are passed over. Any missing key throws.
struct Analysis {
  int problems = 0, evaluated = 0, compiled = 0, correct = 0, aligned = 0;
  double geometric_mean = 0;
  std::map<double, double> fast_p;
  Json averages;
};

Analysis analyse(const fs::path& folder, const std::string& run, int level, const std::string& hardware) {
  Analysis out;
  const std::string level_name = "level" + std::to_string(level);
  std::map<int, std::string> problems;
  for (const auto& entry : fs::directory_iterator(folder / "KernelBench" / level_name))
    problems[std::stoi(entry.path().filename().string())] = entry.path().filename().string();
  const Json evaluation = read_json_file(folder / "runs" / run / "eval_results.json");
  const Json baseline =
      read_json_file(folder / "results/timing" / hardware / "baseline_time_torch.json").at(level_name);
  out.problems = static_cast<int>(problems.size());
  out.evaluated = static_cast<int>(evaluation.size());
  std::vector<std::pair<bool, double>> aligned;  // correct, speedup
  for (const auto& [number, name] : problems) {
    Json sample = {{"compiled", false}, {"correctness", false}, {"runtime", -1.0}};
    int with_id_0 = 0;
    if (evaluation.contains(std::to_string(number)))
      for (const Json& one : evaluation.at(std::to_string(number)))
        if (one.at("sample_id") == 0) {
          sample = one;
          ++with_id_0;
        }
    EXPECT_LE(with_id_0, 1);
    out.compiled += sample.at("compiled") == true;
    out.correct += sample.at("correctness") == true;
    if (!baseline.contains(name)) continue;
    aligned.emplace_back(sample.at("correctness") == true,
                         baseline.at(name).at("mean").get<double>() / sample.at("runtime").get<double>());
  }
  out.aligned = static_cast<int>(aligned.size());
  double logs = 0;
  int count = 0;
  for (const auto& [ok, speedup] : aligned)
    if (ok) {
      logs += std::log(speedup);
      ++count;
    }
  out.geometric_mean = count > 0 ? std::exp(logs / count) : 0;
  for (const double p : {0.0, 0.5, 0.8, 1.0, 1.5, 2.0})
    out.fast_p[p] =
        static_cast<double>(std::count_if(aligned.begin(), aligned.end(),
                                          [p](const auto& a) { return a.first && a.second > p; })) /
        static_cast<double>(aligned.size());
  const fs::path pass = folder / "runs" / run / "pass_at_k_results.json";
  if (fs::exists(pass)) out.averages = read_json_file(pass).at("averages");
  return out;
}

class KernelBenchTest : public ::testing::Test {
 protected:
  KernelBenchTest() {
    results_.run = "mine";
    results_.devices.resize(1);
    results_.devices[0].kind = "H100";
    results_.devices[0].name = "NVIDIA H100 80GB HBM3";
    stage("evaluate");
    shard("generate");
  }
  void stage(const std::string& name) {
    store::StageRow row;
    row.name = name;
    row.hash8 = "0a1b2c3d";
    row.current = true;
    results_.stages.push_back(row);
  }
  void shard(const std::string& job) {
    store::ShardRow row;
    row.stage = "evaluate";
    row.hash8 = "0a1b2c3d";
    row.job = job;
    results_.shards.push_back(row);
  }
  void task(const std::string& id) {
    store::TaskRow row;
    row.id = id;
    row.split = "train";
    row.level = 2;
    row.reference = "def forward(x): return x\n";
    results_.tasks.push_back(row);
  }
  // A sample; with times in ms also its measurement, two rounds.
  store::SampleRow& sample(const std::string& task, const std::string& candidate, const std::string& verdict,
                           double baseline_ms = 0, double candidate_ms = 0) {
    const double speedup = candidate_ms > 0 ? baseline_ms / candidate_ms : 0;
    results_.generated.push_back({"evaluate", "0a1b2c3d", task, "train", candidate, verdict, 0, speedup});
    if (candidate_ms > 0) {
      store::MeasurementRow row;
      row.stage = "evaluate";
      row.hash8 = "0a1b2c3d";
      row.value.task = task;
      row.value.candidate = candidate;
      row.value.verdict = Verdict::kOk;
      row.value.baseline = "eager";
      row.value.speedup = speedup;
      row.value.baseline_ns = baseline_ms * 1e6;
      row.value.candidate_ns = candidate_ms * 1e6;
      row.value.rounds = 2;
      row.device = 0;
      row.sample_begin = static_cast<std::int64_t>(results_.samples.size());
      row.sample_count = 4;
      for (const double ms : {baseline_ms * 0.9, baseline_ms * 1.1, candidate_ms * 0.8, candidate_ms * 1.2})
        results_.samples.push_back(std::llround(ms * 1e6));
      results_.measurements.push_back(row);
    }
    return results_.generated.back();
  }
  // Writes the files beside those of the benchmark that they are for.
  KernelBenchFiles write(const std::string& stage = "") {
    KernelBenchFiles files = kernelbench_files(results_, stage);
    for (const ExportedFile& file : files.files) {
      make_folders((scratch_ / file.path.string()).parent_path());
      write_file_atomic(scratch_ / file.path.string(), file.content);
    }
    return files;
  }
  void benchmark(std::initializer_list<const char*> names) {
    make_folders(scratch_ / "KernelBench/level1");
    for (const char* name : names)
      write_file_atomic(scratch_ / ("KernelBench/level1/" + std::string(name)), "");
  }
  Json evaluation(const std::string& run = "mine-evaluate-level1") {
    return read_json_file(scratch_ / ("runs/" + run + "/eval_results.json"));
  }
  store::Results results_;
  Scratch scratch_;
};

TEST_F(KernelBenchTest, ItsAnalysisGivesTheRunsNumbers) {
  benchmark({"19_ReLU.py", "20_LeakyReLU.py", "21_Sigmoid.py", "22_Tanh.py"});
  for (const char* id : {"level1_19_ReLU", "level1_20_LeakyReLU", "level1_21_Sigmoid"}) task(id);
  sample("level1_19_ReLU", "a", "ok", 3, 2);
  sample("level1_19_ReLU", "b", "wrong_output");
  sample("level1_20_LeakyReLU", "c", "compile_error");
  sample("level1_20_LeakyReLU", "d", "ok", 4, 1);
  sample("level1_21_Sigmoid", "e", "ok", 1, 1);
  sample("level1_21_Sigmoid", "f", "ok", 1, 0.5);
  const KernelBenchFiles files = write();
  EXPECT_EQ(files.hardware, "H100_mine-evaluate");
  const Analysis analysis = analyse(scratch_.path(), "mine-evaluate-level1", 1, files.hardware);
  EXPECT_EQ(analysis.problems, 4);
  EXPECT_EQ(analysis.evaluated, 3);
  EXPECT_EQ(analysis.compiled, 2) << "of the samples 0";
  EXPECT_EQ(analysis.correct, 2);
  EXPECT_EQ(analysis.aligned, 3) << "what failed has a time of its baseline too";
  EXPECT_NEAR(analysis.geometric_mean, std::sqrt(1.5), 1e-9);
  EXPECT_NEAR(analysis.fast_p.at(0), 2.0 / 3, 1e-12);
  EXPECT_NEAR(analysis.fast_p.at(1), 1.0 / 3, 1e-12) << "1x is not over 1x";
  EXPECT_NEAR(analysis.fast_p.at(1.5), 0, 1e-12);
  EXPECT_EQ(analysis.averages, (Json{{"avg_pass@1", (0.5 + 0.5 + 1) / 3}}));
  ASSERT_EQ(files.runs.size(), 1u);
  EXPECT_EQ(files.runs[0].samples, 6u);
  EXPECT_EQ(files.runs[0].correct, 4u);
  EXPECT_EQ(files.runs[0].without_time, 0u);
}

TEST_F(KernelBenchTest, TimesAreMeansInMilliseconds) {
  benchmark({"19_ReLU.py"});
  task("level1_19_ReLU");
  sample("level1_19_ReLU", "a", "ok", 3, 2);
  sample("level1_19_ReLU", "b", "crash");
  write();
  const Json entry = evaluation().at("19").at(0);
  EXPECT_EQ(entry.at("sample_id"), 0);
  EXPECT_NEAR(entry.at("runtime").get<double>(), 2, 1e-9);
  const Json& stats = entry.at("runtime_stats");
  EXPECT_NEAR(stats.at("min").get<double>(), 1.6, 1e-9);
  EXPECT_NEAR(stats.at("max").get<double>(), 2.4, 1e-9);
  EXPECT_NEAR(stats.at("std").get<double>(), 0.8 / std::sqrt(2), 1e-9);
  EXPECT_EQ(stats.at("num_trials"), 2);
  EXPECT_EQ(stats.at("hardware"), "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(entry.at("metadata").at("verdict"), "ok");
  const Json failed = evaluation().at("19").at(1);
  EXPECT_EQ(failed.at("runtime"), -1.0);
  EXPECT_EQ(failed.at("compiled"), true);
  EXPECT_EQ(failed.at("runtime_stats"), Json::object());
  const Json baseline =
      read_json_file(scratch_ / "results/timing/H100_mine-evaluate/baseline_time_torch.json");
  EXPECT_NEAR(baseline.at("level1").at("19_ReLU.py").at("mean").get<double>(), 3, 1e-9);
}

// KernelBench asks about one shape. Such a sample has no speedup, and its measurement has one.
TEST_F(KernelBenchTest, OneThatIsRightAtItsShapeAloneIsCorrect) {
  benchmark({"19_ReLU.py"});
  task("level1_19_ReLU");
  for (const auto& [candidate, verdict] :
       {std::pair("a", Verdict::kWrongOutput), {"b", Verdict::kHack}, {"c", Verdict::kUnstable}}) {
    sample("level1_19_ReLU", candidate, std::string(to_string(verdict)), 3, 2).speedup = 0;
    results_.measurements.back().value.verdict = verdict;
    results_.measurements.back().value.only_hidden = true;
  }
  write();
  const Json list = evaluation().at("19");
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].at("correctness"), true);
  EXPECT_NEAR(list[0].at("runtime").get<double>(), 2, 1e-9);
  EXPECT_EQ(list[0].at("metadata").count("one_shape"), 1u);
  EXPECT_EQ(list[1].at("correctness"), false) << "a hack has no score";
  EXPECT_EQ(list[2].at("correctness"), false);
}

TEST_F(KernelBenchTest, TasksThatAreNotItsHaveLevelsOfTheirOwn) {
  for (const char* id : {"gelu", "add", "never"}) task(id);
  sample("gelu", "a", "ok", 3, 1);
  sample("add", "b", "ok", 1, 1);
  const KernelBenchFiles files = write();
  ASSERT_EQ(files.runs.size(), 1u);
  EXPECT_EQ(files.runs[0].name, "mine-evaluate-level102");
  EXPECT_EQ(files.runs[0].without_time, 1u);
  EXPECT_EQ(read_file(scratch_ / "KernelBench/level102/1_add.py"),
            "# Task add of Warpsmith: it stands here so that KernelBench counts it.\n"
            "def forward(x): return x\n");
  const Analysis analysis = analyse(scratch_.path(), "mine-evaluate-level102", 102, files.hardware);
  EXPECT_EQ(analysis.problems, 3);
  EXPECT_EQ(analysis.correct, 2);
  EXPECT_EQ(evaluation("mine-evaluate-level102").at("2").at(0).at("metadata").at("task"), "gelu");
}

TEST_F(KernelBenchTest, BothKindsOfTasksAreRunsApart) {
  benchmark({"19_ReLU.py"});
  task("kb_level1_19_ReLU");
  task("add");
  sample("kb_level1_19_ReLU", "a", "ok", 3, 1);
  sample("add", "b", "ok", 1, 1);
  const KernelBenchFiles files = write();
  ASSERT_EQ(files.runs.size(), 2u);
  EXPECT_EQ(analyse(scratch_.path(), "mine-evaluate-level1", 1, files.hardware).correct, 1);
  EXPECT_EQ(analyse(scratch_.path(), "mine-evaluate-level102", 102, files.hardware).correct, 1);
}

TEST_F(KernelBenchTest, NothingIsCreditedThatNoModelWrote) {
  task("level1_19_ReLU");
  sample("level1_19_ReLU", "a", "ok", 3, 1).known = true;
  sample("level1_19_ReLU", "b", "unsupported");
  sample("level1_19_ReLU", "c", "ok", 2, 1);
  write();
  const Json list = evaluation().at("19");
  ASSERT_EQ(list.size(), 2u) << "nothing is known of the unsupported one";
  EXPECT_EQ(list[0].at("correctness"), false);
  EXPECT_EQ(list[0].at("runtime"), -1.0);
  EXPECT_THAT(list[0].at("metadata").at("not_credited").get<std::string>(), HasSubstr("no model wrote"));
  EXPECT_EQ(list[1].at("sample_id"), 1);
  EXPECT_EQ(list[1].at("correctness"), true);
}

TEST_F(KernelBenchTest, ALaterTurnIsNoSample) {
  benchmark({"19_ReLU.py"});
  task("level1_19_ReLU");
  sample("level1_19_ReLU", "a", "crash");
  sample("level1_19_ReLU", "mended", "ok", 3, 2).turn = 2;
  EXPECT_EQ(write().runs.at(0).samples, 1u);
  EXPECT_EQ(evaluation().at("19").size(), 1u);
  EXPECT_EQ(
      analyse(scratch_.path(), "mine-evaluate-level1", 1, "H100_mine-evaluate").averages.at("avg_pass@1"),
      0.0);
}

TEST_F(KernelBenchTest, ProgramsMeasuredAgainStandFastestFirstWithoutPassAtK) {
  results_.shards.clear();
  shard("measure");
  task("level1_19_ReLU");
  sample("level1_19_ReLU", "a", "ok", 2, 1);
  sample("level1_19_ReLU", "b", "ok", 5, 1);
  write();
  EXPECT_EQ(evaluation().at("19").at(0).at("metadata").at("candidate"), "b") << "no model wrote any of them";
  EXPECT_FALSE(fs::exists(scratch_ / "runs/mine-evaluate-level1/pass_at_k_results.json"));
  store::CandidateRow row;
  row.id = "a";
  row.origin = "generated";
  results_.candidates.push_back(row);
  write();
  EXPECT_EQ(evaluation().at("19").at(0).at("metadata").at("candidate"), "a");
  EXPECT_EQ(evaluation().at("19").at(1).at("correctness"), false);
}

TEST_F(KernelBenchTest, TheTimesOfEagerAreTheDividedOnesToo) {
  task("level1_19_ReLU");
  sample("level1_19_ReLU", "a", "ok", 4, 1);
  Measurement& m = results_.measurements[0].value;
  m.baseline = "torch_compile";  // 2x as fast as eager: the samples are eager's
  m.baseline_ratio = 2;
  m.speedup = results_.generated[0].speedup = 2;
  store::BaselineRow compiled;
  compiled.value.task = "level1_19_ReLU";
  compiled.value.name = "torch_compile";
  compiled.value.device_kind = "H100";
  compiled.value.state = BaselineState::kCovered;
  compiled.value.ratio = 2;
  results_.baselines.push_back(compiled);
  write();
  const auto mean = [&](const std::string& file) {
    return read_json_file(scratch_ / ("results/timing/H100_mine-evaluate/" + file + ".json"))
        .at("level1")
        .at("19_ReLU.py")
        .at("mean")
        .get<double>();
  };
  EXPECT_NEAR(mean("baseline_time_torch"), 4, 1e-9);
  EXPECT_NEAR(mean("baseline_time_torch_compile_inductor_default"), 2, 1e-9);
}

TEST_F(KernelBenchTest, AStageWithoutSamplesIsAMistake) {
  const auto refused = [&](const std::string& stage) {
    try {
      write(stage);
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code(), kExitUsage);
      return std::string(e.what());
    }
    return std::string("written");
  };
  EXPECT_THAT(refused(""), HasSubstr("has no stage with samples"));
  task("add");
  sample("add", "a", "ok", 1, 1);
  EXPECT_THAT(refused("evalute"), HasSubstr("(did you mean `evaluate`?)"));
  EXPECT_EQ(refused("evaluate"), "written");
}

// What we write, `compare` reads.
TEST_F(KernelBenchTest, ComesBackAsPublishedScores) {
  task("level1_19_ReLU");
  sample("level1_19_ReLU", "a", "ok", 3, 2);
  write();
  const Published p = read_published(
      scratch_ / "runs/mine-evaluate-level1/eval_results.json",
      {.level = 1,
       .baseline_times = scratch_ / "results/timing/H100_mine-evaluate/baseline_time_torch.json"});
  ASSERT_EQ(p.scores.size(), 1u);
  EXPECT_NEAR(*p.scores[0].speedup, 1.5, 1e-9);
  EXPECT_EQ(p.device, "NVIDIA H100 80GB HBM3");
}

}  // namespace
}  // namespace warpsmith::report
