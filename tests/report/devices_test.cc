#include "warpsmith/report/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "warpsmith/report/report.h"

namespace warpsmith::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Devices : public ::testing::Test {
 protected:
  void stage(const std::string& device, const std::string& found, const std::string& suffix = "") {
    store::StageRow row;
    row.name = "sweep-" + device + suffix;
    row.base = "sweep";
    row.hash8 = "0a1b2c3d";
    row.device = device;
    row.device_found = found;
    row.current = row.finished = true;
    results_.stages.push_back(row);
  }
  void measured(const std::string& device, const std::string& task, double speedup,
                Verdict verdict = Verdict::kOk) {
    store::MeasurementRow row;
    row.stage = "sweep-" + device;
    row.hash8 = "0a1b2c3d";
    row.value.task = task;
    row.value.candidate = "c-" + task;
    row.value.verdict = verdict;
    row.value.speedup = speedup;
    row.value.detail = verdict == Verdict::kNotMeasured ? "no device: site lab has no " + device : "";
    results_.measurements.push_back(row);
  }
  // "title: cell cell, of n = mean", a column each.
  std::vector<std::string> told() const {
    std::vector<std::string> out;
    for (const DeviceTable& table : device_tables(results_))
      for (std::size_t c = 0; c < table.columns.size(); ++c) {
        std::string text = table.columns[c].title() + ":";
        for (std::size_t t = 0; t < table.tasks.size(); ++t) {
          const DeviceCell& cell = table.rows[t][c];
          text += " " + (cell.speedup ? std::to_string(*cell.speedup).substr(0, 4) : "`" + cell.text + "`");
        }
        out.push_back(text + ", " + std::to_string(table.columns[c].tasks) + " = " +
                      (table.columns[c].geometric_mean
                           ? std::to_string(*table.columns[c].geometric_mean).substr(0, 4)
                           : "-"));
      }
    return out;
  }
  void sweep() {
    stage("H20", "none");
    stage("L40", "twin");
    stage("H100", "real");
    stage("RTX3090", "real");
    for (const char* task : {"add", "gelu", "mul"}) measured("H20", task, 0, Verdict::kNotMeasured);
    measured("L40", "add", 2);
    measured("L40", "mul", 8);
    measured("L40", "mul", 4);
    measured("L40", "gelu", 0, Verdict::kWrongOutput);
    measured("H100", "add", 1.5);
    measured("H100", "mul", 0, Verdict::kUnstable);
  }
  store::Results results_;
};

TEST_F(Devices, AreSideBySideGpusBeforeTwinsBeforeWhatWasNotThere) {
  sweep();
  store::CandidateRow broken;
  broken.id = "c-gelu";
  broken.task = "gelu";
  results_.candidates.push_back(broken);
  store::CompileRow compile;
  compile.candidate = "c-gelu";
  compile.stage = "sweep-H100";
  compile.hash8 = "0a1b2c3d";
  compile.verdict = "compile_error";
  results_.compiles.push_back(compile);
  EXPECT_THAT(told(),
              ElementsAre("H100: 1.50 `compile_error` `unstable`, 1 = 1.50", "RTX3090: `` `` ``, 0 = -",
                          "L40 (CPU twin): 2.00 `wrong_output` 8.00, 2 = 4.00",
                          "H20: `no device` `no device` `no device`, 0 = -"));
}

TEST_F(Devices, WinsStandBesideThePapersCount) {
  sweep();
  for (store::MeasurementRow& row : results_.measurements) {
    row.device = row.stage == "sweep-H100" ? 0 : 1;
    if (row.stage == "sweep-L40") row.value.speedup_low = row.value.task == "mul" ? 3.9 : 0.9;
  }
  results_.devices.resize(2);
  results_.devices[0].kind = "H100";
  results_.devices[1].kind = "cpu";
  measured("H100", "gelu", 7);
  results_.measurements.back().device = 0;
  results_.measurements.back().value.host_bound = true;
  const DeviceTable table = device_tables(results_).at(0);
  EXPECT_EQ(table.columns[0].tasks, 1);
  EXPECT_EQ(table.columns[0].host_bound, 1);
  EXPECT_EQ(table.columns[0].wins, 0) << "no interval is known";
  EXPECT_EQ(table.columns[0].above, 1);
  EXPECT_EQ(table.columns[2].wins, 0.5);
  EXPECT_EQ(table.columns[2].above, 1);
  const std::string page = devices_html({table});
  EXPECT_THAT(page, HasSubstr("<th>tasks with a win</th><td>0.0 %</td><td>–</td><td>50.0 %</td><td>–</td>"));
  EXPECT_THAT(page, HasSubstr("<th>best score &gt; 1.01×</th><td>100.0 %</td><td>–</td><td>100.0 %</td>"));
  EXPECT_THAT(page, HasSubstr("<th>left out, bound by the host</th><td>1</td><td>0</td><td>0</td>"));
  const Json columns = devices_json({table}).at(0).at("columns");
  EXPECT_EQ(columns[2].at("wins"), 0.5);
  EXPECT_TRUE(columns[1].at("wins").is_null());
}

TEST_F(Devices, OneDeviceIsNoTable) {
  stage("L40", "twin");
  measured("L40", "add", 2);
  EXPECT_THAT(told(), IsEmpty());
  stage("L40", "twin", "-again");
  EXPECT_THAT(told(), IsEmpty()) << "the same device twice";
  stage("cpu", "");
  measured("cpu", "add", 3);
  EXPECT_THAT(told(), ElementsAre("CPU: 3.00, 1 = 3.00", "L40 (CPU twin): 2.00, 1 = 2.00",
                                  "L40 (CPU twin): ``, 0 = -"));
}

TEST_F(Devices, OlderVersionsAreLeftOut) {
  sweep();
  results_.stages[1].current = false;
  EXPECT_THAT(told(), Not(::testing::Contains(HasSubstr("L40"))));
}

TEST_F(Devices, ThePageNamesNoGpuThatHasNotProducedANumber) {
  sweep();
  for (store::MeasurementRow& row : results_.measurements) {
    store::SampleRow sample;
    sample.stage = row.stage;
    sample.hash8 = row.hash8;
    sample.task = row.value.task;
    sample.group = "train";
    sample.candidate = row.value.candidate;
    sample.verdict = to_string(row.value.verdict);
    sample.speedup = row.value.speedup;
    results_.generated.push_back(sample);
  }
  const std::string page = html(results_);
  EXPECT_THAT(page, HasSubstr("<h2>Across devices</h2>"));
  EXPECT_THAT(page, HasSubstr("<th colspan=\"2\">GPU</th><th colspan=\"1\">CPU twin (device kind cpu): no "
                              "GPU produced these</th>"));
  EXPECT_THAT(page, HasSubstr("<th>L40 (CPU twin)</th>"));
  EXPECT_THAT(page, HasSubstr("<td>no device</td>"));
  EXPECT_THAT(page, HasSubstr("<td>4.00× of 2</td>"));
  // Wherever the stage is named: in its row, as the best program's, in the data of the plots.
  for (std::size_t at = page.find("sweep-L40"); at != std::string::npos; at = page.find("sweep-L40", at + 1))
    EXPECT_TRUE(page.substr(at).starts_with("sweep-L40 (CPU twin)")) << page.substr(at, 60);
  EXPECT_THAT(page, Not(HasSubstr("sweep-H100 (CPU twin)")));
}

TEST_F(Devices, DegenerateTasksAreShownAndInNoMean) {
  sweep();
  store::TaskRow task;
  task.id = "add";
  task.degenerate = "one constant passes";
  results_.tasks.push_back(task);
  const Json out = Json::parse(json(results_)).at("across_devices");
  EXPECT_NEAR(out[0].at("columns").at(2).at("geometric_mean").get<double>(), 8, 1e-9);
  EXPECT_EQ(out[0].at("tasks").at(0).at("cells").at(2).at("speedup"), 2.0);
}

TEST_F(Devices, TheExportHasTheSame) {
  sweep();
  const Json out = Json::parse(json(results_)).at("across_devices");
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].at("stage"), "sweep");
  EXPECT_EQ(out[0].at("columns").at(2).at("device"), "L40");
  EXPECT_EQ(out[0].at("columns").at(2).at("found"), "twin");
  EXPECT_NEAR(out[0].at("columns").at(2).at("geometric_mean").get<double>(), 4, 1e-9);
  EXPECT_TRUE(out[0].at("columns").at(3).at("geometric_mean").is_null());
  EXPECT_EQ(out[0].at("tasks").at(0).at("task"), "add");
  EXPECT_EQ(out[0].at("tasks").at(0).at("cells").at(2).at("speedup"), 2.0);
  EXPECT_EQ(out[0].at("tasks").at(0).at("cells").at(3).at("text"), "no device");
  EXPECT_EQ(Json::parse(json(store::Results{})).at("across_devices"), Json::array());
}

}  // namespace
}  // namespace warpsmith::report
