// What runs cost: shards cut by what earlier ones took, attempts and usage as the controller leaves them, and
// what a plan makes of these.
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "../controller/fake_executor.h"
#include "plan_cost.h"
#include "warpsmith/controller/attempts.h"
#include "warpsmith/controller/controller.h"

namespace warpsmith::cli {
namespace {

constexpr int kItems = 40;

// Rounds of one job each; the items of a round depend on the results of the one before.
class RoundsStage : public stages::Stage {
 public:
  explicit RoundsStage(stages::StageInputs inputs) : inputs_(std::move(inputs)) {}
  stages::StageStep start() override { return next(); }
  stages::StageStep on_job(const stages::JobResult& result) override {
    for (const stages::ItemResult& item : result.items)
      sum_ = (sum_ * 7 + item.record.at("value").get<int>()) % 1009;
    return next();
  }

 private:
  stages::StageStep next() {
    stages::StageStep step;
    if (round_ == inputs_.spec.resolved.value("rounds", 3)) {
      step.finished = true;
      step.output = {{"schema", "warpsmith.stage_output/1"}, {"kind", "command"}, {"sum", sum_}};
      return step;
    }
    stages::JobRequest request{
        .round = ++round_, .job = "work", .program = "/bin/true", .expected_item_s = 10};
    request.resources = inputs_.spec.train;
    for (int i = 0; i < kItems; ++i)
      request.items.push_back({{"id", "i" + std::to_string(i)}, {"x", (sum_ + i) % 10}});
    step.jobs.push_back(std::move(request));
    return step;
  }
  stages::StageInputs inputs_;
  int round_ = 0, sum_ = 0;
};

class Watcher : public controller::RunObserver {
 public:
  void on_state(const Json& state) override {
    most_asked = std::max(most_asked, state.value("gpu_hours_asked", 0.0));
  }
  void on_message(const std::string&) override {}
  double most_asked = 0;
};

class CostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    results_ = fs::temp_directory_path() / ("warpsmith-cost-" + std::to_string(::getpid()));
    fs::remove_all(results_);
    make_folders(run_ = results_ / "one");
    workflow::StageSpec stage;
    stage.name = stage.base_name = "a";
    stage.kind = "command";
    stage.settings = workflow::CommandSettings{.argv = {"/bin/true"}};
    stage.resolved = {{"rounds", 3}};
    stage.shard_s = 100;
    stage.train = {.cpus = 2, .memory_bytes = 4000, .gpus = 2, .gpu_type = "L40", .time_s = 900};
    spec_.name = "test";
    spec_.stages.push_back(std::move(stage));
  }
  void TearDown() override { fs::remove_all(results_); }

  controller::RunOutcome run(controller::FakeExecutor& executor) {
    controller::ControllerParts parts = parts_of(spec_, run_, executor, observer_);
    parts.make_stage = [](stages::StageInputs inputs) {
      return std::make_unique<RoundsStage>(std::move(inputs));
    };
    parts.interrupted = interrupted_;
    parts.slots = 1;
    parts.start_s = 0;
    return controller::Controller(std::move(parts)).run();
  }
  // How many shards each round of the newest version has: "4 40 40".
  std::string shards() const {
    std::string out;
    const fs::path folder =
        controller::stage_folder(run_, "a", controller::read_former_results(run_, "a").front().hash);
    for (int round = 1; fs::exists(folder / std::to_string(round)); ++round)
      out += (out.empty() ? "" : " ") +
             std::to_string(
                 read_job_file(controller::job_folder(folder, round, "work") / "job.json").shards.size());
    return out;
  }
  Json output() const {
    return read_json_file(
        controller::stage_folder(run_, "a", controller::read_former_results(run_, "a").front().hash) /
        "output.json");
  }
  Json usage() const {
    return read_json_file(
        controller::stage_folder(run_, "a", controller::read_former_results(run_, "a").front().hash) /
        "usage.json");
  }
  static void slow(controller::FakeExecutor& executor, double item_s) {
    executor.wall_s = [item_s](int items) { return items * item_s; };
  }

  fs::path results_, run_;
  workflow::WorkflowSpec spec_;
  Watcher observer_;
  std::function<bool()> interrupted_ = [] { return false; };
};

TEST_F(CostTest, LaterRoundsAreCutByWhatEarlierOnesTook) {
  controller::FakeExecutor as_guessed, quick, slower;
  slow(as_guessed, 10);
  run(as_guessed);
  EXPECT_EQ(shards(), "4 4 4") << "40 items of 10 s in shards of 100 s";
  const Json expected = output();
  fs::remove_all(run_);
  make_folders(run_);
  slow(quick, 1);
  run(quick);
  EXPECT_EQ(shards(), "4 2 1") << "the more is seen, the more it is believed";
  EXPECT_EQ(output(), expected);
  fs::remove_all(run_);
  make_folders(run_);
  slow(slower, 50);
  run(slower);
  EXPECT_EQ(shards(), "4 20 20");
  EXPECT_EQ(output(), expected) << "shards are cut elsewhere, and that is all";
}

TEST_F(CostTest, WhatWasLearntOutlivesTheController) {
  controller::FakeExecutor first, second;
  slow(first, 50);
  slow(second, 10);
  interrupted_ = [&] { return first.items_run >= 30; };
  EXPECT_EQ(run(first).kind, controller::RunOutcome::Kind::kInterrupted);
  interrupted_ = [] { return false; };
  EXPECT_EQ(run(second).kind, controller::RunOutcome::Kind::kFinished);
  EXPECT_EQ(shards(), "4 16 10") << "30 items took 50 s each, the others 10 s";
  EXPECT_EQ(first.items_run + second.items_run, 3 * kItems);
}

TEST_F(CostTest, TheFirstRoundOfANewVersionGoesByTheOlderOne) {
  controller::FakeExecutor first, second;
  slow(first, 50);
  slow(second, 50);
  run(first);
  spec_.stages[0].resolved["rounds"] = 1;
  run(second);
  EXPECT_EQ(shards(), "20");
}

// The journal ends before the second round; the round's job was written. It has its shards, whatever is
// learnt since.
TEST_F(CostTest, AJobThatWasCutButNotJournaledKeepsItsShards) {
  controller::FakeExecutor first, second;
  slow(first, 50);
  run(first);
  const Json expected = output();
  const fs::path journal = run_ / "journal/1.jsonl";
  const std::string text = read_file(journal);
  std::size_t end = text.find("\"event\":\"job_added\"", text.find("\"event\":\"job_added\"") + 1);
  fs::resize_file(journal, text.rfind('\n', end) + 1);
  fs::remove(controller::stage_folder(run_, "a", controller::read_former_results(run_, "a").front().hash) /
             "output.json");
  spec_.stages[0].shard_s = 1e6;
  slow(second, 50);
  EXPECT_EQ(run(second).kind, controller::RunOutcome::Kind::kFinished);
  EXPECT_EQ(shards(), "4 20 20");
  EXPECT_EQ(output(), expected);
  EXPECT_EQ(second.items_run, 0) << "all had their records";
}

TEST_F(CostTest, GpuHoursCountOverAllLivesAlsoWithoutABudget) {
  controller::FakeExecutor first, second;
  slow(first, 10);
  slow(second, 10);
  bool waited = false;
  first.before_poll = [&] {  // state.json is written once a second
    if (first.queue.size() == 4 && !std::exchange(waited, true))
      std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  };
  interrupted_ = [&] { return first.items_run >= kItems; };
  run(first);
  EXPECT_NEAR(observer_.most_asked, 3 * 2 * 0.25, 1e-9)
      << "the three after the first, of two GPUs and a quarter of an hour";
  interrupted_ = [] { return false; };
  EXPECT_NEAR(run(second).gpu_hours, 3 * kItems * 10 * 2 / 3600.0, 1e-9);
  const Json state = read_json_file(run_ / "state.json");
  EXPECT_NEAR(state.at("gpu_hours").get<double>(), 3 * kItems * 10 * 2 / 3600.0, 1e-9);
  EXPECT_EQ(state.at("gpu_hours_asked"), 0.0);
}

TEST_F(CostTest, GpuHoursOfAJournalThatDoesNotSayThemAreThoseOfItsJobs) {
  const std::string hash(64, 'c');
  {
    run::Journal journal(run_ / "journal", {.text = "before"}, [](run::Event&&) {});
    for (const run::Event& e : std::initializer_list<run::Event>{
             {.kind = run::EventKind::kStageStarted, .name = "a", .hash = hash},
             {.kind = run::EventKind::kJobAdded, .end = 1, .name = "work", .hash = "d"},
             {.kind = run::EventKind::kSubmitted, .end = 1, .submission = 1},
             {.kind = run::EventKind::kShardEnded, .wall_s = 1800}})
      journal.add(e);
    journal.commit();
  }
  const fs::path folder = controller::job_folder(controller::stage_folder(run_, "a", hash), 0, "work");
  make_folders(folder);
  JobFile job;
  job.resources.gpus = 3;
  job.shards = {{0, 1}};
  write_file_atomic(folder / "job.json", to_json(job).dump());
  spec_.stages[0].train.gpus = 0;
  controller::FakeExecutor executor;
  EXPECT_NEAR(run(executor).gpu_hours, 1.5, 1e-9);
}

TEST_F(CostTest, AttemptsAreRowsWithWhatTheyAskedForAndTook) {
  controller::FakeExecutor executor;
  slow(executor, 10);
  bool failed = false;
  executor.program = [&](const JobFile& job, const Item& item) -> Json {
    if (job.round == 1 && item.id == "i12" && !std::exchange(failed, true))
      throw controller::FakeExecutor::Fail{EndCause::kOutOfMemory, 0, 9};
    return {{"value", item.value.at("x").get<int>()}};
  };
  run(executor);
  const auto rows = controller::read_attempts(run_);
  ASSERT_EQ(rows.size(), 13u) << "twelve shards, one of them twice";
  const store::AttemptRow& lost = rows[1];
  EXPECT_EQ(lost.stage, "a");
  EXPECT_EQ(lost.hash8, plan::hash8(controller::read_former_results(run_, "a").front().hash));
  EXPECT_EQ(lost.job, "work");
  EXPECT_EQ(lost.round, 1);
  EXPECT_EQ(lost.shard, 1);
  EXPECT_EQ(lost.attempt, 1);
  EXPECT_EQ(lost.cause, "out_of_memory");
  EXPECT_EQ(lost.signal, 9);
  EXPECT_EQ(lost.items, 2);
  EXPECT_EQ(lost.open, 8);
  EXPECT_EQ(lost.where, "test");
  EXPECT_EQ(lost.cpus, 2);
  EXPECT_EQ(lost.gpus, 2);
  EXPECT_EQ(lost.gpu_type, "L40");
  EXPECT_EQ(lost.time_s, 900);
  EXPECT_EQ(lost.memory_bytes, 4000);
  EXPECT_EQ(lost.peak_memory_bytes, 1000);
  EXPECT_EQ(lost.wall_s, 20);
  EXPECT_EQ(lost.cpu_s, 10);
  std::string again;
  for (const store::AttemptRow& row : rows)
    if (row.attempt == 2)
      again += std::to_string(row.shard) + ": " + std::to_string(row.memory_bytes) + ", " +
               std::to_string(row.items) + "; ";
  EXPECT_EQ(again, "1: 6000, 8; ") << "with half as much memory again";

  EXPECT_EQ(lost.money, 0) << "there is no site";
  write_file_atomic(run_ / "site.yaml",
                    "schema: warpsmith.site/1\nname: lab\ngpus: {L40: {}}\nprices: {currency: EUR, "
                    "gpu_hours: {L40: 1.8}}\n");
  EXPECT_EQ(controller::current_results(run_).currency, "EUR");
  EXPECT_NEAR(controller::read_attempts(run_)[1].money, 1.8 * 2 * 20 / 3600, 1e-12);
  write_file_atomic(run_ / "site.yaml", "schema: warpsmith.site/1\nname: lab\nprices: {cpu_hours: 9}\n");
  EXPECT_EQ(controller::read_attempts(run_)[1].money, 0) << "its CPUs are a part of the price of its GPUs";

  EXPECT_EQ(controller::aggregate_run(run_).attempts, 13u);
  EXPECT_EQ(store::read_results(run_ / "results.h5").attempts.size(), 13u);
  EXPECT_FALSE(controller::aggregate_run(run_).written);
  fs::remove_all(run_ / "journal");
  EXPECT_EQ(controller::aggregate_run(run_, true).attempts, 0u) << "no journal, no attempts, no failure";
}

// It has no items that could be counted: it is taken to run as long as last time.
TEST_F(CostTest, AServiceCostsWhatItTookLastTime) {
  const fs::path folder = run_ / "stages/server/0a1b2c3d";
  make_folders(folder);
  write_file_atomic(folder / "usage.json", Json{{"schema", "warpsmith.usage/1"},
                                                {"kind", "service"},
                                                {"written", 1},
                                                {"jobs",
                                                 {{"service",
                                                   {{"program", "warpsmith-service"},
                                                    {"jobs", 1},
                                                    {"items", 0},
                                                    {"timed_items", 0},
                                                    {"wall_s", 7200.0}}}}}}
                                               .dump());
  workflow::StageSpec server;
  server.name = server.base_name = "server";
  server.kind = "service";
  server.settings = workflow::ServiceSettings{};
  server.service.gpus = 2;
  UsageFinder finder(run_, run_.parent_path());
  const StageCost cost = stage_cost(stages::planned_jobs(server, {}), finder.find("server", "service"));
  EXPECT_DOUBLE_EQ(cost.gpu_hours, 4);
  EXPECT_TRUE(cost.unknown.empty());
}

TEST_F(CostTest, ADamagedJournalCostsTheAttemptsAlone) {
  controller::FakeExecutor executor;
  run(executor);
  std::string text = read_file(run_ / "journal/1.jsonl");
  text[text.size() / 2] ^= 1;
  write_file_atomic(run_ / "journal/1.jsonl", text);
  EXPECT_THROW(controller::read_attempts(run_), Error);
  const store::Aggregated done = controller::aggregate_run(run_);
  EXPECT_TRUE(done.written);
  EXPECT_EQ(done.attempts, 0u);
}

TEST_F(CostTest, ResultsThatWereSetAsideKeepTheirAttempts) {
  controller::FakeExecutor first, second;
  run(first);
  const std::size_t before = controller::read_attempts(run_).size();
  const fs::path folder =
      controller::stage_folder(run_, "a", controller::read_former_results(run_, "a").front().hash);
  controller::set_aside(run_, "a", controller::read_former_results(run_, "a").front().hash);
  ASSERT_FALSE(fs::exists(folder));
  run(second);
  std::size_t aside = 0;
  for (const store::AttemptRow& row : controller::read_attempts(run_)) aside += row.set_aside;
  EXPECT_EQ(aside, before);
  EXPECT_GT(controller::read_attempts(run_).size(), before);
}

TEST_F(CostTest, AStageLeavesItsUsage) {
  controller::FakeExecutor first, second;
  slow(first, 10);
  slow(second, 10);
  interrupted_ = [&] { return first.items_run >= kItems; };
  run(first);
  EXPECT_EQ(usage().at("jobs").at("work").at("items"), kItems) << "an interrupted one, so far";
  interrupted_ = [] { return false; };
  run(second);
  const Json all = usage();
  EXPECT_EQ(all.at("schema"), "warpsmith.usage/1");
  EXPECT_EQ(all.at("kind"), "command");
  const Json& work = all.at("jobs").at("work");
  EXPECT_EQ(work.at("program"), "/bin/true");
  EXPECT_EQ(work.at("jobs"), 3);
  EXPECT_EQ(work.at("items"), 3 * kItems);
  EXPECT_EQ(work.at("timed_items"), 3 * kItems);
  EXPECT_EQ(work.at("wall_s"), 3.0 * kItems * 10);
  EXPECT_EQ(work.at("cpu_s"), 3.0 * kItems * 5);
  EXPECT_EQ(work.at("gpu_s"), 3.0 * kItems * 20);
  EXPECT_EQ(work.at("by_gpu"), (Json{{"L40", {{"timed_items", 3 * kItems}, {"wall_s", 3.0 * kItems * 10}}}}));
  EXPECT_EQ(work.at("peak_memory_bytes"), 1000);
}

stages::PlannedJob planned(const std::string& job, std::uint64_t items, bool upper_bound = false,
                           int gpus = 0) {
  return {.round = 1,
          .job = job,
          .items = items,
          .upper_bound = upper_bound,
          .program = "warpsmith-" + job,
          .resources = {.cpus = 2, .gpus = gpus}};
}

const StageUsage kUsage = {
    .source = "results/r/stages/s/0a1b2c3d",
    .kind = "measure",
    .jobs = {{"compile", {.program = "warpsmith-compile", .jobs = 2, .items = 400, .item_s = 1.8}},
             {"measure", {.program = "warpsmith-measure", .jobs = 2, .items = 400, .item_s = 36}},
             {"train", {.program = "other", .jobs = 2, .items = 10, .item_s = 1}}}};

TEST(StageCost, IsItemsBySecondsByResources) {
  StageCost cost = stage_cost({planned("compile", 1000), planned("measure", 100, true, 3)}, &kUsage);
  EXPECT_NEAR(cost.gpu_hours, 3, 1e-9);
  EXPECT_NEAR(cost.cpu_hours, 1 + 2, 1e-9);
  EXPECT_TRUE(cost.at_most);
  EXPECT_EQ(sum_text(cost), "at most 3 GPU-hours, 3 CPU-hours");
  EXPECT_EQ(cost.source, "results/r/stages/s/0a1b2c3d");
  cost = stage_cost({planned("compile", 1000)}, &kUsage);
  EXPECT_EQ(sum_text(cost), "about 1 CPU-hours");
  cost = stage_cost({planned("compile", 0)}, &kUsage);
  EXPECT_NEAR(cost.cpu_hours, 0.2, 1e-9) << "as many items as a round had last time";
}

TEST(StageCost, SaysTheMoneyWhereTheSiteHasPrices) {
  stages::PlannedJob h100 = planned("measure", 100, false, 3);
  h100.resources.gpu_type = "H100";
  stages::PlannedJob h20 = planned("measure", 100, false, 3);
  h20.resources.gpu_type = "H20";
  const workflow::Prices prices{.gpu_hours = {{"H100", 2.5}}, .tokens = {}};
  StageCost cost = stage_cost({h100}, &kUsage, prices);
  EXPECT_NEAR(cost.money, 7.5, 1e-9);
  EXPECT_EQ(sum_text(cost), "about 3 GPU-hours (7.50 in money), 2 CPU-hours");
  cost = stage_cost({h100, h20}, &kUsage, prices);
  EXPECT_EQ(sum_text(cost), "about 6 GPU-hours (7.50 in money without H20), 4 CPU-hours");
  EXPECT_EQ(to_json(cost).at("unpriced"), Json({"H20"}));
  EXPECT_EQ(sum_text(stage_cost({h20}, &kUsage, prices)), "about 3 GPU-hours (no price of H20), 2 CPU-hours");
  EXPECT_EQ(sum_text(stage_cost({h20}, &kUsage, {.gpu_hours = {{"H20", 0}}, .tokens = {}})),
            "about 3 GPU-hours (0.00 in money), 2 CPU-hours");
}

TEST(StageCost, GoesByTheTypeOfGpuWhereItsTimeIsKnown) {
  StageUsage usage = kUsage;
  usage.jobs["measure"].item_s_on["L40"] = 72;
  stages::PlannedJob job = planned("measure", 100, false, 1);
  job.resources.gpu_type = "L40";
  EXPECT_NEAR(stage_cost({job}, &usage).gpu_hours, 2, 1e-9);
  job.resources.gpu_type = "H20";
  EXPECT_NEAR(stage_cost({job}, &usage).gpu_hours, 1, 1e-9) << "as jobs went on other types";
}

TEST(StageCost, SaysWhatIsNotKnown) {
  StageCost cost =
      stage_cost({planned("generate", 5), planned("compile", 1000), planned("train", 5)}, &kUsage);
  EXPECT_EQ(cost.unknown, (std::vector<std::string>{"generate", "train"}))
      << "another program's train says nothing";
  EXPECT_EQ(sum_text(cost), "about 1 CPU-hours");
  for (const StageUsage* usage : {static_cast<const StageUsage*>(nullptr), &kUsage})
    EXPECT_EQ(stage_cost({planned("generate", 5)}, usage).source, "");
}

TEST(TotalText, ComparesWithTheBudget) {
  PlanCost cost;
  cost.all = {.gpu_hours = 8, .cpu_hours = 250.4};
  EXPECT_EQ(total_text(cost), "about 8 GPU-hours, 250 CPU-hours");
  cost.budget_gpu_hours = 10;
  cost.used_gpu_hours = 1.5;
  EXPECT_EQ(total_text(cost),
            "about 8 GPU-hours, 250 CPU-hours, within the budget of 10 GPU-hours (1.5 used so far)");
  cost.used_gpu_hours = 2.5;
  EXPECT_EQ(total_text(cost),
            "about 8 GPU-hours, 250 CPU-hours, over the budget of 10 GPU-hours (2.5 used so far)");
  cost.all.at_most = true;
  cost.all.unknown = {"sft"};
  EXPECT_EQ(total_text(cost),
            "at most 8 GPU-hours, 250 CPU-hours without what is not known of sft, perhaps over the budget of "
            "10 GPU-hours "
            "(2.5 used so far)");
  EXPECT_EQ(total_json(cost).at("budget_gpu_hours"), 10.0);
  cost.all.unknown.assign(1000, "sft");
  EXPECT_NE(total_text(cost).find("not known of 1000 stages, perhaps"), std::string::npos)
      << total_text(cost);
  cost = {};
  cost.all.unknown = {"sft"};
  EXPECT_EQ(total_text(cost), "at a cost that is not known");
}

// Learnt in this run before any other; else in the newest other one that has measured for itself.
TEST_F(CostTest, APlanLearnsFromItsOwnRunElseFromTheNewestOther) {
  const auto plan = [&] {
    const auto plans =
        plan::plan_stages(spec_, plan::digest_datasets(spec_), controller::read_history(run_), {});
    UsageFinder finder(run_, results_);
    return plan_cost(spec_, plans, run_, finder);
  };
  spec_.stages[0].settings = workflow::CommandSettings{.argv = {"/bin/true"}, .items = "tasks"};
  for (int i = 0; i < 90; ++i) spec_.stages[0].dataset.train.push_back("t" + std::to_string(i));
  EXPECT_TRUE(plan().stages[0].source.empty());
  const auto other = [&](const std::string& name, double item_s, const std::string& kind,
                         const std::string& replayed, int hours_ago) {
    const fs::path folder = results_ / name / "stages/a/0a1b2c3d";
    make_folders(folder);
    write_file_atomic(results_ / name / "run.json", Json{{"replay_timings", replayed}}.dump());
    write_file_atomic(results_ / name / "state.json", "{}");
    fs::last_write_time(results_ / name / "state.json",
                        fs::file_time_type::clock::now() - std::chrono::hours(hours_ago));
    const Json job = {
        {"program", "/bin/true"}, {"jobs", 1}, {"items", 10}, {"timed_items", 10}, {"wall_s", 10 * item_s}};
    write_file_atomic(
        folder / "usage.json",
        Json{{"kind", kind}, {"written", 5}, {"jobs", {{"work", job}, {"command", job}}}}.dump());
  };
  other("old", 20, "command", "", 9);
  other("newer", 40, "command", "", 5);
  other("another-kind", 80, "measure", "", 3);
  other("replayed", 160, "command", "old", 2);
  make_folders(results_ / "broken/stages/a/11111111");
  write_file_atomic(results_ / "broken/run.json", "{}");
  write_file_atomic(results_ / "broken/state.json", "{}");
  write_file_atomic(results_ / "broken/stages/a/11111111/usage.json", "{\"kind\": \"comm");
  PlanCost cost = plan();
  EXPECT_NEAR(cost.stages[0].gpu_hours, 90 * 40 * 2 / 3600.0, 1e-9);
  EXPECT_EQ(cost.stages[0].source, (results_ / "newer/stages/a/0a1b2c3d").string());
  EXPECT_FALSE(cost.all.at_most);
  other("one", 10, "command", "", 99);
  write_file_atomic(run_ / "state.json", R"({"gpu_hours": 0.25})");
  cost = plan();
  EXPECT_NEAR(cost.stages[0].gpu_hours, 90 * 10 * 2 / 3600.0, 1e-9) << "its own is nearer, though older";
  EXPECT_NEAR(cost.all.gpu_hours, cost.stages[0].gpu_hours, 1e-12);
  EXPECT_EQ(cost.used_gpu_hours, 0.25);
}

}  // namespace
}  // namespace warpsmith::cli
