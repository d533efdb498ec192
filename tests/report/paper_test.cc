// CUDA-L1's tables: the paper's convention for missing kernels beside what was measured.
#include "warpsmith/report/paper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warpsmith/report/report.h"

namespace warpsmith::report {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Paper : public ::testing::Test {
 protected:
  Paper() {
    for (const auto& [id, level] : {std::pair("a", 1), {"b", 1}, {"c", 2}, {"d", 2}}) {
      store::TaskRow row;
      row.id = id;
      row.level = level;
      row.split = "train";
      results_.tasks.push_back(row);
    }
    stage("measure", "H100");
  }
  void stage(const std::string& name, const std::string& device) {
    store::StageRow row;
    row.name = name;
    row.hash8 = "0a1b2c3d";
    row.device = device;
    row.current = true;
    results_.stages.push_back(row);
  }
  store::MeasurementRow& measured(const std::string& task, const std::string& candidate, double speedup,
                                  Verdict verdict = Verdict::kOk, const std::string& device = "H100") {
    std::size_t place = 0;
    while (place < results_.devices.size() && results_.devices[place].kind != device) ++place;
    if (place == results_.devices.size()) results_.devices.emplace_back().kind = device;
    store::MeasurementRow row;
    row.stage = "measure";
    row.hash8 = "0a1b2c3d";
    row.device = static_cast<std::int64_t>(place);
    row.value.task = task;
    row.value.candidate = candidate;
    row.value.baseline = "eager";
    row.value.verdict = verdict;
    row.value.speedup = speedup;
    row.value.speedup_low = speedup / 1.01;
    row.value.speedup_high = speedup * 1.01;
    results_.measurements.push_back(row);
    return results_.measurements.back();
  }
  void baseline(const std::string& task, const std::string& name, double ratio) {
    store::BaselineRow row;
    row.stage = "measure";
    row.hash8 = "0a1b2c3d";
    row.value.task = task;
    row.value.name = name;
    row.value.device_kind = "H100";
    row.value.state = BaselineState::kCovered;
    row.value.ratio = ratio;
    row.value.low = ratio / 1.001;
    row.value.high = ratio * 1.001;
    results_.baselines.push_back(row);
  }
  void program(const std::string& id, const std::string& task, const std::string& origin) {
    store::CandidateRow row;
    row.id = id;
    row.task = task;
    row.origin = origin;
    results_.candidates.push_back(row);
  }
  void failed_sample(const std::string& task, const std::string& candidate, Verdict verdict) {
    sample(task, candidate, 0);
    results_.generated.back().verdict = to_string(verdict);
  }
  void sample(const std::string& task, const std::string& candidate, double speedup, bool known = false) {
    results_.generated.push_back({"measure", "0a1b2c3d", task, "train", candidate,
                                  speedup > 0 ? "ok" : "crash", 0, speedup, known, known});
  }
  // Two of four tasks have a correct program, one a wrong one, one none.
  void four_tasks() {
    measured("a", "p1", 2);
    measured("a", "p2", 1.5);
    measured("b", "p3", 0.5);
    measured("c", "p4", 0, Verdict::kWrongOutput);
    baseline("a", "torch_compile", 1.6);
    baseline("a", "cuda_graph", 2);
  }
  PaperRow levels(const std::string& baseline, std::optional<std::int64_t> level = {}) const {
    for (const PaperRow& row : paper_tables(results_).levels)
      if (row.baseline == baseline && row.level == level) return row;
    ADD_FAILURE() << "no row over " << baseline;
    return {};
  }
  store::Results results_;
};

TEST_F(Paper, AMissingKernelCountsOneInThePapersColumnAndNowhereElse) {
  four_tasks();
  const PaperRow row = levels("eager");
  EXPECT_EQ(row.device, "H100");
  EXPECT_EQ(row.total, 4);
  EXPECT_EQ(row.attempted, 3);
  EXPECT_EQ(row.valid, 2);
  ASSERT_TRUE(row.paper && row.ours);
  EXPECT_EQ(row.paper->count, 4u);
  EXPECT_DOUBLE_EQ(row.paper->mean, (2 + 0.5 + 1 + 1) / 4);
  EXPECT_EQ(row.paper->max, 2);
  EXPECT_DOUBLE_EQ(row.paper->quantile75, 1.25);
  EXPECT_DOUBLE_EQ(row.paper->median, 1);
  EXPECT_DOUBLE_EQ(row.paper->quantile25, 0.875);
  EXPECT_EQ(row.above, 1);
  EXPECT_EQ(row.ours->count, 2u);
  EXPECT_DOUBLE_EQ(row.ours->geometric_mean, 1);
  EXPECT_DOUBLE_EQ(row.ours->median, 1.25);
  EXPECT_EQ(row.wins, 1);
}

// KernelBench asks about one shape.
TEST_F(Paper, OneThatIsRightAtOneShapeCountsByThePapersConventionAlone) {
  four_tasks();
  measured("c", "p5", 3, Verdict::kWrongOutput).value.only_hidden = true;
  measured("d", "p6", 0, Verdict::kLaunchError).value.only_hidden = true;  // not timed
  measured("a", "p7", 4, Verdict::kWrongOutput).value.only_hidden = true;
  const PaperRow row = levels("eager");
  EXPECT_EQ(row.valid, 2);
  EXPECT_EQ(row.one_shape, 1) << "of `a` there is a program that is right at all";
  EXPECT_DOUBLE_EQ(row.paper->mean, (4 + 0.5 + 3 + 1) / 4);
  EXPECT_EQ(row.above, 2);
  EXPECT_EQ(row.ours->count, 2u);
  EXPECT_DOUBLE_EQ(row.ours->geometric_mean, 1);
  EXPECT_EQ(row.wins, 1);
}

TEST_F(Paper, CudaGraphAndCudnnAverageThePairsThatExist) {
  four_tasks();
  const PaperRow compiled = levels("torch_compile"), graph = levels("cuda_graph");
  EXPECT_EQ(compiled.paper->count, 4u);
  EXPECT_DOUBLE_EQ(compiled.paper->mean, (1.25 + 1 + 1 + 1) / 4);
  EXPECT_EQ(compiled.ours->count, 1u);
  EXPECT_EQ(graph.paper->count, 1u);
  EXPECT_DOUBLE_EQ(graph.paper->mean, 1);
  EXPECT_EQ(graph.valid, 2) << "valid is a matter of the program";
  EXPECT_EQ(graph.above, 0);
}

TEST_F(Paper, EachLevelIsASetOfItsOwn) {
  four_tasks();
  const PaperRow one = levels("eager", 1), two = levels("eager", 2);
  EXPECT_EQ(one.total, 2);
  EXPECT_DOUBLE_EQ(one.paper->mean, 1.25);
  EXPECT_EQ(two.total, 2);
  EXPECT_EQ(two.attempted, 1);
  EXPECT_EQ(two.valid, 0);
  EXPECT_DOUBLE_EQ(two.paper->mean, 1) << "two missing kernels";
  EXPECT_FALSE(two.ours);
  EXPECT_FALSE(levels("cuda_graph", 2).paper) << "no pair";
}

TEST_F(Paper, DegenerateAndHostBoundTasksAreInThePapersColumnAlone) {
  four_tasks();
  results_.tasks[0].degenerate = "one constant passes";
  PaperRow row = levels("eager");
  EXPECT_EQ(row.paper->max, 2);
  EXPECT_EQ(row.ours->count, 1u);
  EXPECT_EQ(row.left_out, 1);
  EXPECT_EQ(row.wins, 0);
  results_.measurements[2].value.host_bound = true;
  row = levels("eager");
  EXPECT_FALSE(row.ours);
  EXPECT_EQ(row.left_out, 2);
}

TEST_F(Paper, ProgramsOfAModelAloneCountWhereThereAreSome) {
  four_tasks();
  EXPECT_EQ(levels("eager").authors, "all");
  for (const char* id : {"p1", "p3", "p4"}) program(id, "a", "dataset");
  program("p2", "a", "generated");
  const PaperRow row = levels("eager");
  EXPECT_EQ(row.authors, "model");
  EXPECT_EQ(row.attempted, 1);
  EXPECT_EQ(row.valid, 1);
  EXPECT_EQ(row.paper->max, 1.5);
  sample("a", "p2", 1.5, true);
  EXPECT_THAT(paper_tables(results_).levels, IsEmpty()) << "it repeats a person's";
}

TEST_F(Paper, FailedCompilationsAndWhatSaysNothing) {
  measured("a", "p1", 2);
  measured("b", "p2", 0, Verdict::kUnsupported);
  program("p3", "c", "imported");
  store::CompileRow compile;
  compile.candidate = "p3";
  compile.stage = "measure";
  compile.hash8 = "0a1b2c3d";
  compile.verdict = "compile_error";
  results_.compiles.push_back(compile);
  EXPECT_EQ(levels("eager").attempted, 2);
  EXPECT_EQ(levels("eager").valid, 1);
}

TEST_F(Paper, StagesHaveTheBestOfTheirOwnSamples) {
  four_tasks();
  program("p1", "a", "generated");
  sample("a", "p1", 2);
  sample("a", "p2", 1.5);
  sample("b", "p3", 0.5, true);  // a person's
  sample("c", "p4", 0);
  const auto rows = paper_tables(results_).stages;
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].stage, "measure");
  EXPECT_EQ(rows[0].baseline, "eager");
  EXPECT_EQ(rows[0].total, 4);
  EXPECT_EQ(rows[0].attempted, 3);
  EXPECT_EQ(rows[0].valid, 1);
  EXPECT_DOUBLE_EQ(rows[0].paper->mean, (2 + 1 + 1 + 1) / 4.0);
}

TEST_F(Paper, AStageCountsItsProgramsThatAreRightAtOneShape) {
  measured("c", "p5", 3, Verdict::kWrongOutput).value.only_hidden = true;
  program("p5", "c", "generated");
  failed_sample("c", "p5", Verdict::kWrongOutput);
  const auto rows = paper_tables(results_).stages;
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].valid, 0);
  EXPECT_EQ(rows[0].one_shape, 1);
  EXPECT_DOUBLE_EQ(rows[0].paper->mean, (3 + 1 + 1 + 1) / 4.0);
  EXPECT_EQ(levels("eager").one_shape, 1) << "its device has no other program";
}

TEST_F(Paper, AStageOfPeoplesProgramsAloneHasNoRow) {
  four_tasks();
  program("p1", "a", "dataset");
  program("p9", "d", "generated");
  store::ShardRow shard;
  shard.stage = "measure";
  shard.hash8 = "0a1b2c3d";
  shard.job = "measure";
  results_.shards.push_back(shard);
  sample("a", "p1", 2);
  EXPECT_THAT(paper_tables(results_).stages, IsEmpty());
  sample("d", "p9", 0);
  const auto rows = paper_tables(results_).stages;
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].attempted, 1);
  EXPECT_EQ(rows[0].valid, 0);
}

TEST_F(Paper, TypesOfDevicesStandSideBySide) {
  four_tasks();
  EXPECT_THAT(paper_tables(results_).devices, IsEmpty()) << "one device";
  measured("a", "p1", 3, Verdict::kOk, "L40");
  measured("b", "p1", 0, Verdict::kCrash, "A100");
  const auto rows = paper_tables(results_).devices;
  ASSERT_EQ(rows.size(), 4u) << "nothing is correct on the A100";
  EXPECT_EQ(rows[0].device, "H100");
  EXPECT_EQ(rows[3].device, "L40");
  EXPECT_DOUBLE_EQ(rows[3].paper->mean, 1.5);
  EXPECT_EQ(rows[3].ours->median, 3);
}

TEST_F(Paper, TablesStandInThePageAndInExports) {
  four_tasks();
  const std::string page = html(results_);
  EXPECT_THAT(page, HasSubstr("<h2>CUDA-L1's tables</h2>"));
  EXPECT_THAT(
      page,
      HasSubstr(
          "<tr><th>H100</th><td>eager</td><td>all</td><td>4</td><td>3</td><td>2</td><td>0</td><td>4</td>"
          "<td>1.12×</td><td>2.00×</td><td>1.25×</td><td>1.00×</td><td>0.88×</td><td>1</td>"
          "<td>2</td><td>1.00×</td><td>1.25×</td><td>1.25×</td><td>1</td><td>0</td></tr>"))
      << page.substr(page.find("id=\"paper-4\""), 2000);
  EXPECT_THAT(page, HasSubstr("whoever wrote it: no model wrote any in this run"));
  EXPECT_THAT(page, Not(HasSubstr("id=\"paper-6\"")));
  const Json json = Json::parse(report::json(results_)).at("paper_tables");
  EXPECT_EQ(json.at("table_4").at(0).at("paper").at("tasks"), 4);
  EXPECT_EQ(json.at("table_4").at(0).at("ours").at("median"), 1.25);
  EXPECT_EQ(json.at("table_6"), Json::array());
  EXPECT_THAT(csv(results_, "paper_tables"), HasSubstr("\n4,H100,,,eager,all,all,4,3,2,0,4,1.125,"));
  EXPECT_THAT(html(store::Results{}), Not(HasSubstr("CUDA-L1's tables")));
}

}  // namespace
}  // namespace warpsmith::report
