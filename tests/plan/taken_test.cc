// Candidates of another run: which are chosen, and what is said where there are none.
#include "warpsmith/plan/taken.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "warpsmith/base/files.h"
#include "warpsmith/plan/plan.h"
#include "warpsmith/records/measurement.h"
#include "warpsmith/workflow/load.h"

namespace warpsmith::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TakenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("warpsmith-taken-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    run_ = folder_ / "results/first";
    make_folders(run_);
    write_file_atomic(run_ / "run.json", R"({"workflow_file": "/lab/first.yaml"})");
  }
  void TearDown() override { fs::remove_all(folder_); }

  static Json entry(const std::string& task, const std::string& source, double speedup,
                    Verdict verdict = Verdict::kOk, const std::string& baseline = "eager") {
    const Candidate c = make_plan_candidate(task, source, {"generated", "s", 1, "", ""});
    Measurement m;
    m.candidate = c.id;
    m.task = task;
    m.baseline = baseline;
    m.verdict = verdict;
    m.speedup = speedup;
    m.rounds = 35;
    return {{"candidate", to_json(c)}, {"measurement", to_json(m)}};
  }
  void stage(const std::string& name, const std::string& hash8, std::vector<Json> entries,
             const std::string& device = "cpu") const {
    make_folders(run_ / "stages" / name / hash8);
    write_file_atomic(run_ / "stages" / name / hash8 / "output.json",
                      Json{{"stage", name}, {"device", device}, {"candidates", std::move(entries)}}.dump());
  }
  void state(const std::vector<std::pair<std::string, std::string>>& stages) const {
    Json list = Json::array();
    for (const auto& [name, hash8] : stages) list.push_back({{"stage", name}, {"hash8", hash8}});
    write_file_atomic(run_ / "state.json", Json{{"stages", list}}.dump());
  }
  void take(const std::string& settings) {
    workflow::LoadResult loaded = workflow::load_workflow_text(
        "schema: warpsmith.workflow/1\nname: w\n"
        "dataset: {folder: tasks, train: [mul, add], heldout_operation: [gelu]}\n"
        "stages:\n  - {name: e, kind: measure, " +
            settings + "}\n",
        folder_ / "w.yaml", {.overrides = {}, .seed = {}, .base_folder = {}, .check_files = false});
    if (!loaded.spec) throw InvalidInput(loaded.mistakes);
    take_candidates(*loaded.spec);
    spec_ = *loaded.spec;
  }
  // Sources of what a stage of these settings takes; or why it cannot run.
  std::vector<std::string> taken(const std::string& settings = "") {
    take("candidates_of_run: results/first" + settings);
    const workflow::StageSpec& stage = spec_.stages[0];
    if (!stage.taken) return {"blocked: " + stage.blocked};
    EXPECT_EQ(stage.blocked, "");
    std::vector<std::string> sources;
    for (const Candidate& c : stage.taken->list) sources.push_back(c.source());
    return sources;
  }

  // Tier and name of what a stage takes from imported/; or why it cannot run.
  std::vector<std::string> imported(const std::string& settings = "") {
    take("candidates: imported" + settings);
    const workflow::StageSpec& stage = spec_.stages[0];
    if (!stage.taken) return {stage.blocked};
    std::vector<std::string> names;
    for (const Candidate& c : stage.taken->list) {
      EXPECT_EQ(c.origin.kind, "imported");
      names.push_back(std::string(to_string(c.tier)) + " " + c.origin.detail);
    }
    return names;
  }

  fs::path folder_, run_;
  workflow::WorkflowSpec spec_;
};

TEST_F(TakenTest, TheFastestOfEachTaskOverAllCurrentStages) {
  stage("collect", "11111111",
        {entry("add", "slow", 1.1), entry("mul", "wrong", 9, Verdict::kWrongOutput),
         entry("mul", "right", 0.5), entry("other", "not ours", 5)});
  stage("rl", "22222222", {entry("add", "fast", 2.5), entry("gelu", "held out", 3)});
  stage("rl", "33333333", {entry("add", "older version", 7)});
  stage("gone", "44444444", {entry("add", "no longer in the workflow", 8)});
  state({{"collect", "11111111"}, {"rl", "22222222"}, {"waits", ""}});
  EXPECT_THAT(taken(), ElementsAre("right", "fast", "held out")) << "in the order of the workflow's tasks";
  EXPECT_THAT(taken(", heldout: false"), ElementsAre("right", "fast"));
  EXPECT_THAT(taken(", select: all"), ElementsAre("right", "slow", "fast", "held out"));
}

TEST_F(TakenTest, AProgramIsAsFastAsItWasAtItsBestAndIsTakenOnce) {
  stage("a", "11111111", {entry("add", "x", 1.1), entry("add", "y", 2)});
  stage("b", "22222222", {entry("add", "x", 3)});
  state({{"a", "11111111"}, {"b", "22222222"}});
  EXPECT_THAT(taken(), ElementsAre("x"));
  EXPECT_THAT(taken(", select: all"), ElementsAre("x", "y"));
}

TEST_F(TakenTest, OtherDevicesAndBaselinesAreNoMeasure) {
  stage("a", "11111111", {entry("add", "home", 1.1)}, "H100");
  stage("b", "22222222", {entry("add", "elsewhere", 9)}, "L40");
  stage("c", "33333333", {entry("add", "over another", 9, Verdict::kOk, "torch_compile")}, "H100");
  state({{"a", "11111111"}, {"b", "22222222"}, {"c", "33333333"}});
  EXPECT_THAT(taken(", select: all"), ElementsAre("home"));
}

TEST_F(TakenTest, WithoutAStateTheOutputWrittenLastCounts) {
  stage("a", "11111111", {entry("add", "new", 1.1)});
  stage("a", "22222222", {entry("add", "old", 2)});
  fs::last_write_time(run_ / "stages/a/22222222/output.json",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_THAT(taken(), ElementsAre("new"));
}

TEST_F(TakenTest, TheChoiceEntersTheHashAndTheRestDoesNot) {
  stage("a", "11111111", {entry("add", "x", 1.1)});
  taken();
  const DatasetDigests digests{.tasks = {{"add", "t"}}, .candidates = {}, .gpu_tasks = {{"add", "t"}}};
  const auto inputs = [&] { return stage_inputs(spec_.stages[0], digests, {}); };
  const Json before = inputs();
  stage("a", "11111111", {entry("add", "x", 1.3), entry("add", "slower", 1.0)});
  taken();
  EXPECT_EQ(inputs(), before);
  stage("a", "11111111", {entry("add", "x", 1.3), entry("add", "faster", 2.0)});
  taken();
  const auto changes = differences(before, inputs());
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_THAT(to_string(changes[0]), HasSubstr("candidates of the run: "));
  spec_.stages[0].taken.reset();
  EXPECT_THROW(inputs(), Error) << "nobody has read them";
}

TEST_F(TakenTest, ARunThatWillNotDoBlocksTheStage) {
  const std::string command = "`warpsmith run /lab/first.yaml --run-dir " + run_.string() + "`";
  EXPECT_THAT(taken(), ElementsAre("blocked: the run " + run_.string() + " has no finished stage; " +
                                   command + " goes on with it"));
  stage("a", "11111111", {entry("add", "x", 1.1, Verdict::kWrongOutput)});
  EXPECT_THAT(taken(), ElementsAre("blocked: the run " + run_.string() +
                                   " has no successful program of this workflow's tasks; " + command +
                                   " goes on with it"));
  write_file_atomic(run_ / "stages/a/11111111/output.json", "{\"candidates\": [{");
  EXPECT_THAT(taken()[0], HasSubstr("blocked: the run " + run_.string() + " cannot be read: "));
  fs::remove_all(run_);
  write_file_atomic(folder_ / "first.yaml", "");
  EXPECT_THAT(taken(),
              ElementsAre("blocked: there is no run " + run_.string() + "; `warpsmith run " +
                          (folder_ / "first.yaml").string() + " --run-dir " + run_.string() + "` makes it"));
  const auto plans = plan_stages(spec_, Digests{{folder_ / "tasks", {}}}, {});
  EXPECT_EQ(plans[0].action, Action::kBlocked);
  EXPECT_THAT(plans[0].reason, HasSubstr("there is no run"));
}

TEST_F(TakenTest, AllThatLiesBelowImportedOfTheTasks) {
  const auto put = [&](const std::string& file, const std::string& text) {
    make_folders((folder_ / "tasks" / file).parent_path());
    write_file_atomic(folder_ / "tasks" / file, text);
  };
  EXPECT_THAT(imported(), ElementsAre(HasSubstr("`warpsmith import` makes it")));
  put("add/task.yaml", "");
  EXPECT_THAT(imported(), ElementsAre(HasSubstr("has kernels below imported/")));
  put("add/imported/h100.py", "class ModelNew: pass");
  put("add/imported/a100.py", "class ModelNew: pass");
  put("add/imported/plan.cu", "// plan: launch k<<<1, 1>>>(x)");
  put("mul/imported/host.cu", "int forward();");
  put("gelu/imported/held_out.py", "x");
  put("other/imported/not_ours.py", "x");
  EXPECT_THAT(imported(), ElementsAre("extension mul/imported/host.cu", "python add/imported/a100.py",
                                      "plan add/imported/plan.cu", "python gelu/imported/held_out.py"))
      << "equal ones once";
  EXPECT_THAT(imported(", heldout: false"), ::testing::SizeIs(3));
  const auto inputs = [&] { return stage_inputs(spec_.stages[0], {}, {}); };
  const Json before = inputs();
  put("add/imported/plan.cu", "// plan: launch k<<<1, 2>>>(x)");
  imported(", heldout: false");
  const auto changes = differences(before, inputs());
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_THAT(to_string(changes[0]), HasSubstr("imported kernels: "));
  put("mul/imported/notes.txt", "x");
  EXPECT_THAT(imported(), ElementsAre(HasSubstr("notes.txt: an imported kernel is a file")));
}

}  // namespace
}  // namespace warpsmith::plan
