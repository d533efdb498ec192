// The controller's loop over a real run folder, with stages and an executor of the test.
#include "warpsmith/controller/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_executor.h"
#include "warpsmith/base/random.h"
#include "warpsmith/store/results.h"
#include "warpsmith/workflow/devices.h"

namespace warpsmith::controller {
namespace {

// A stage of `rounds` rounds: the items of each depend on the sum over the round before and over the stages
// that it needs, so that a lost or a doubled record shows in the output.
class SumStage : public stages::Stage {
 public:
  explicit SumStage(stages::StageInputs inputs) : inputs_(std::move(inputs)) {
    for (const auto& [name, output] : inputs_.upstream) sum_ += output.at("sum").get<int>();
    rounds_ = inputs_.spec.resolved.value("rounds", 3);
  }
  stages::StageStep start() override { return next(); }
  stages::StageStep on_job(const stages::JobResult& result) override {
    for (const stages::ItemResult& item : result.items) {
      if (item.record.is_null())
        ++lost_;
      else
        sum_ += item.record.at("value").get<int>();
    }
    if (--open_ > 0) return {.jobs = {}, .finished = false, .output = {}, .progress = {{"round", round_}}};
    return next();
  }

 private:
  stages::StageStep next() {
    if (round_ == rounds_)
      return {.jobs = {},
              .finished = true,
              .output = {{"schema", "warpsmith.stage_output/1"},
                         {"stage", inputs_.spec.name},
                         {"kind", "command"},
                         {"sum", sum_},
                         {"lost", lost_}}};
    stages::StageStep step;
    for (const char* job : {"left", "right"}) {
      stages::JobRequest request{.round = round_, .job = job, .program = "/bin/true", .expected_item_s = 30};
      request.resources = inputs_.spec.train;
      request.params["checkpoint_prefix"] = "checkpoints/" + inputs_.spec.name;
      for (int i = 0; i < 6; ++i)
        request.items.push_back({{"id", "i" + std::to_string(i)}, {"x", (sum_ + i) % 10}});
      step.jobs.push_back(std::move(request));
    }
    open_ = 2;
    ++round_;
    return step;
  }
  stages::StageInputs inputs_;
  int rounds_ = 3, round_ = 0, open_ = 0, sum_ = 0, lost_ = 0;
};

// One job of six shards, under the name that `command` stages give theirs.
class CommandStage : public stages::Stage {
 public:
  explicit CommandStage(stages::StageInputs inputs) : spec_(std::move(inputs.spec)) {}
  stages::StageStep start() override {
    stages::JobRequest request{.round = 0, .job = "command", .program = "/bin/true", .expected_item_s = 300};
    request.resources = spec_.train;
    for (int i = 0; i < 6; ++i) request.items.push_back({{"id", "i" + std::to_string(i)}});
    return {.jobs = {request}, .finished = false, .output = {}};
  }
  stages::StageStep on_job(const stages::JobResult&) override {
    return {.jobs = {}, .finished = true, .output = {{"stage", spec_.name}, {"kind", "command"}}};
  }

 private:
  const workflow::StageSpec spec_;
};

class Silent : public RunObserver {
 public:
  void on_state(const Json&) override {}
  void on_message(const std::string& message) override { messages.push_back(message); }
  std::vector<std::string> messages;
};

class ControllerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    run_ = fs::temp_directory_path() / ("warpsmith-controller-" + std::to_string(::getpid())) /
           ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(run_);
    make_folders(run_);
    spec_.name = "test";
    add("a");
    add("b", {"a"});
    add("other");
  }
  void TearDown() override { fs::remove_all(run_.parent_path()); }

  workflow::StageSpec& add(const std::string& name, std::vector<std::string> needs = {}) {
    workflow::StageSpec stage;
    stage.name = stage.base_name = name;
    stage.kind = "command";
    stage.settings = workflow::CommandSettings{};
    stage.needs = std::move(needs);
    stage.resolved = {{"rounds", 3}};
    spec_.stages.push_back(std::move(stage));
    return spec_.stages.back();
  }
  RunOutcome run(FakeExecutor& executor) {
    ControllerParts parts = parts_of(spec_, run_, executor, observer_);
    parts.make_stage = make_stage_;
    parts.gpus = gpus_;
    parts.interrupted = interrupted_;
    parts.selection = selection_;
    parts.slots = 2;
    return Controller(std::move(parts)).run();
  }
  Json output(const std::string& stage) const {
    for (const plan::FormerResult& result : read_former_results(run_, stage))
      if (result.finished) return read_json_file(stage_folder(run_, stage, result.hash) / "output.json");
    return nullptr;
  }

  fs::path run_;
  workflow::WorkflowSpec spec_;
  plan::Selection selection_;
  Silent observer_;
  std::function<bool()> interrupted_ = [] { return false; };
  std::function<std::unique_ptr<stages::Stage>(stages::StageInputs)> make_stage_ =
      [](stages::StageInputs inputs) { return std::make_unique<SumStage>(std::move(inputs)); };
  std::map<std::string, std::size_t> gpus_;
};

constexpr int kItemsAStage = 3 * 2 * 6;

TEST_F(ControllerTest, RunsToTheEndThenHasNothingToDo) {
  FakeExecutor executor;
  EXPECT_EQ(run(executor).kind, RunOutcome::Kind::kFinished);
  EXPECT_EQ(executor.items_run, 3 * kItemsAStage);
  EXPECT_EQ(output("a").at("lost"), 0);
  EXPECT_EQ(output("a"), [&] {
    Json o = output("other");
    o["stage"] = "a";
    return o;
  }());
  EXPECT_NE(output("b").at("sum"), output("a").at("sum")) << "b begins with a's sum";
  EXPECT_EQ(read_json_file(run_ / "state.json").at("state"), "finished");
  FakeExecutor again;
  EXPECT_EQ(run(again).kind, RunOutcome::Kind::kNothingToDo);
  EXPECT_TRUE(again.submitted.empty());
  EXPECT_TRUE(observer_.messages.empty());
}

TEST_F(ControllerTest, ChangedParameterRunsItsStageAndThoseThatNeedIt) {
  FakeExecutor first, second;
  run(first);
  spec_.stages[0].resolved["rounds"] = 2;
  EXPECT_EQ(run(second).kind, RunOutcome::Kind::kFinished);
  EXPECT_EQ(second.items_run, 2 * 2 * 6 + kItemsAStage) << "a and b, not `other`";
}

// One job of a program that keeps no records, an item a shard.
class PlainStage : public stages::Stage {
 public:
  explicit PlainStage(stages::StageInputs inputs) : inputs_(std::move(inputs)) {}
  stages::StageStep start() override {
    stages::JobRequest request{.round = 0, .job = "command", .program = "/bin/true", .expected_item_s = 1000};
    request.resources = inputs_.spec.train;
    request.params["records"] = "none";
    for (int i = 0; i < 8; ++i) request.items.push_back({{"id", "i" + std::to_string(i)}});
    stages::StageStep step;
    step.jobs.push_back(std::move(request));
    return step;
  }
  stages::StageStep on_job(const stages::JobResult& result) override {
    Json records = Json::array();
    for (const stages::ItemResult& item : result.items) records.push_back(item.record);
    return {.jobs = {},
            .finished = true,
            .output = {{"schema", "warpsmith.stage_output/1"},
                       {"stage", inputs_.spec.name},
                       {"kind", "command"},
                       {"records", records}}};
  }

 private:
  stages::StageInputs inputs_;
};

TEST_F(ControllerTest, ProgramsWithoutRecordsAreDoneByTheirExitCodeAndNotRunAgain) {
  spec_.stages.resize(1);
  spec_.stages[0].retry.times[EndCause::kFailed] = 1;
  make_stage_ = [](stages::StageInputs inputs) { return std::make_unique<PlainStage>(std::move(inputs)); };
  std::map<std::string, int> tries;
  FakeExecutor first, second;
  first.program = second.program = [&](const JobFile&, const Item& item) {
    if (++tries[item.id] == 1 && item.id == "i2") throw FakeExecutor::Fail{EndCause::kFailed, 1};
    return Json::object();
  };
  interrupted_ = [&] { return first.items_run >= 4; };
  EXPECT_EQ(run(first).kind, RunOutcome::Kind::kInterrupted);
  const int done = first.items_run;
  interrupted_ = [] { return false; };
  EXPECT_EQ(run(second).kind, RunOutcome::Kind::kFinished);
  EXPECT_EQ(done + second.items_run, 8) << "no shard twice, but the one that failed";
  const Json records = output("a").at("records");
  ASSERT_EQ(records.size(), 8u);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(records[i], (Json{{"item", "i" + std::to_string(i)}, {"index", i}}));
  const store::Results results = store::read_run(run_);
  ASSERT_EQ(results.shards.size(), 8u);
  for (const store::ShardRow& shard : results.shards) {
    EXPECT_TRUE(shard.ended);
    EXPECT_EQ(shard.records, 1);
  }
}

// "a one of 2, b none of 1, ": whether a version counts, and how many there are.
std::string versions(const fs::path& run) {
  std::map<std::string, std::pair<std::string, int>> found;
  std::vector<std::string> order;
  for (const store::StageVersion& v : store::stage_versions(run)) {
    auto& [current, all] = found[v.stage];
    if (all++ == 0) order.push_back(v.stage);
    if (v.current) current = v.hash8;
  }
  std::string text;
  for (const std::string& stage : order)
    text += stage + (found[stage].first.empty() ? " none" : " one") + " of " +
            std::to_string(found[stage].second) + ", ";
  return text;
}

std::string current(const fs::path& run, const std::string& stage) {
  for (const store::StageVersion& v : store::stage_versions(run))
    if (v.stage == stage && v.current) return v.hash8;
  return "";
}

TEST_F(ControllerTest, EveryVersionOfAStageHasCheckpointsOfItsOwn) {
  FakeExecutor first, second;
  run(first);
  spec_.stages[0].resolved["rounds"] = 2;
  run(second);
  std::set<std::string> prefixes;
  for (const FakeExecutor* executor : {&first, &second})
    for (const run::ShardStart& start : executor->submitted) {
      const JobFile job = read_job_file(start.job_file);
      EXPECT_EQ(job.params.at("checkpoint_prefix"), "checkpoints/" + job.stage + "-" + job.hash8);
      prefixes.insert(job.params.at("checkpoint_prefix"));
    }
  EXPECT_EQ(prefixes.size(), 5u) << "a and b twice, `other` once";
}

TEST_F(ControllerTest, TheVersionThatTheWorkflowCameToLastIsCurrent) {
  FakeExecutor first, second, third, fourth;
  run(first);
  EXPECT_EQ(versions(run_), "a one of 1, b one of 1, other one of 1, ");
  const std::string a = current(run_, "a"), b = current(run_, "b");
  spec_.stages[0].resolved["rounds"] = 2;
  // While a runs anew, nobody knows whether what b has still holds.
  bool looked = false;
  second.before_poll = [&] {
    if (looked || second.items_run == 0) return;
    looked = true;
    EXPECT_EQ(current(run_, "b"), "");
  };
  run(second);
  EXPECT_EQ(versions(run_), "a one of 2, b one of 2, other one of 1, ");
  EXPECT_NE(current(run_, "a"), a);
  spec_.stages[0].resolved["rounds"] = 3;
  EXPECT_EQ(run(third).kind, RunOutcome::Kind::kNothingToDo);
  EXPECT_EQ(current(run_, "a"), a) << "the change was taken back";
  EXPECT_EQ(current(run_, "b"), b);
  spec_.stages[0].resolved["rounds"] = 1;
  selection_.accept = {"a"};
  run(fourth);
  EXPECT_EQ(fourth.items_run, 0);
  EXPECT_NE(current(run_, "a"), "") << "an accepted result counts";
}

TEST_F(ControllerTest, ForceRunsAStageAgainAndThoseAfterItOnlyIfItsOutputChanged) {
  FakeExecutor first, second;
  run(first);
  selection_.force = {"a"};
  run(second);
  EXPECT_EQ(second.items_run, kItemsAStage) << "the output came out as before";
  EXPECT_TRUE(fs::is_directory(run_ / "set_aside"));
  selection_ = {};
  FakeExecutor third;
  EXPECT_EQ(run(third).kind, RunOutcome::Kind::kNothingToDo);
}

TEST_F(ControllerTest, AcceptDeclaresAStageUpToDate) {
  FakeExecutor first, second, third;
  run(first);
  spec_.stages[0].resolved["rounds"] = 2;
  selection_.accept = {"a"};
  EXPECT_EQ(run(second).kind, RunOutcome::Kind::kNothingToDo);
  selection_ = {};
  EXPECT_EQ(run(third).kind, RunOutcome::Kind::kNothingToDo) << "it is remembered";
}

TEST_F(ControllerTest, OnlyRunsWhatIsNamed) {
  FakeExecutor executor;
  selection_.only = {"other"};
  run(executor);
  EXPECT_EQ(executor.items_run, kItemsAStage);
  EXPECT_TRUE(output("a").is_null());
}

TEST_F(ControllerTest, ItemsWithoutRecordAreTriedAgain) {
  FakeExecutor executor;
  executor.wall_s = [](int items) { return 1 + 30.0 * items; };  // as expected: shards stay short
  int calls = 0;
  executor.program = [&](const JobFile&, const Item& item) -> Json {
    if (++calls % 5 == 0) throw FakeExecutor::Fail{EndCause::kFinished};  // says that it is done, and is not
    return {{"value", item.value.at("x").get<int>() * 2}};
  };
  EXPECT_EQ(run(executor).kind, RunOutcome::Kind::kFinished);
  EXPECT_EQ(executor.items_run, 3 * kItemsAStage);
  EXPECT_EQ(output("b").at("lost"), 0);
}

TEST_F(ControllerTest, FailedStageBlocksThoseThatNeedItAndNoOther) {
  FakeExecutor executor;
  executor.program = [](const JobFile& job, const Item& item) -> Json {
    if (job.stage == "a" && job.round == 1 && item.id == "i4")
      throw FakeExecutor::Fail{EndCause::kCrash, 0, 11};
    return {{"value", 1}};
  };
  const RunOutcome outcome = run(executor);
  EXPECT_EQ(outcome.kind, RunOutcome::Kind::kFailed);
  EXPECT_EQ(outcome.failed, std::vector<std::string>{"a"});
  EXPECT_EQ(outcome.blocked, std::vector<std::string>{"b"});
  EXPECT_EQ(output("other").at("lost"), 0);
  ASSERT_FALSE(observer_.messages.empty());
  EXPECT_NE(observer_.messages[0].find("crash (signal 11)"), std::string::npos) << observer_.messages[0];
  // Mended, it goes on where it was.
  FakeExecutor mended;
  mended.program = [](const JobFile&, const Item&) -> Json { return {{"value", 1}}; };
  EXPECT_EQ(run(mended).kind, RunOutcome::Kind::kFinished);
  EXPECT_EQ(executor.items_run + mended.items_run, 3 * kItemsAStage) << "nothing was done twice";
}

// What is wrong with the records of one stage is that stage's failure; others go on, and mended it goes on as
// well.
TEST_F(ControllerTest, BadRecordsFailTheirStageAlone) {
  const std::string deep(200'000, '[');
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"hello\n{\"end\":1}\n", "records.jsonl: bad line at byte 0: no JSON at its byte 1"},
      {"{\"x\":" + deep + "\n{\"end\":1}\n", "nested deeper than 256"},
      {"{\"item\":3}\n", "bad record at byte 0: `item` is no text"},
      {"{\"item\":\"i0\",\"index\":-1}\n", "`index` is no whole number"},
      {"{\"item\":\"i0\",\"index\":5,\"value\":1}\n", "the record of i0 has the index 5"},
      {"FIFO", "no regular file"}};
  for (const auto& [content, why] : cases) {
    fs::remove_all(run_);
    make_folders(run_);
    observer_.messages.clear();
    FakeExecutor executor;
    executor.program = [&](const JobFile& job, const Item& item) -> Json {
      if (job.stage != "a" || item.id != "i0") return {{"value", 1}};
      const fs::path folder =
          job_folder(*fs::directory_iterator(run_ / "stages/a"), job.round, job.job) / "0/1";
      fs::remove(folder / "records.jsonl");
      if (content == "FIFO")
        EXPECT_EQ(::mkfifo((folder / "records.jsonl").c_str(), 0600), 0);
      else
        write_file_atomic(folder / "records.jsonl", content);
      throw FakeExecutor::Fail{EndCause::kFinished};
    };
    const RunOutcome outcome = run(executor);
    EXPECT_EQ(outcome.kind, RunOutcome::Kind::kFailed) << why;
    EXPECT_FALSE(outcome.environment);
    EXPECT_EQ(outcome.failed, std::vector<std::string>{"a"}) << why;
    EXPECT_EQ(output("other").at("lost"), 0) << why;
    const std::string failure = outcome.state.at("stages").at(0).value("failure", "");
    EXPECT_NE(failure.find(why), std::string::npos) << failure;
    EXPECT_NE(failure.find("records.jsonl"), std::string::npos) << failure;
    FakeExecutor mended;
    EXPECT_EQ(run(mended).kind, RunOutcome::Kind::kFinished) << why;
    EXPECT_EQ(output("a").at("lost"), 0) << why;
  }
}

TEST_F(ControllerTest, WhoeverTakesTheRunMendsItsState) {
  for (const char* content : {"garbage", "[1]", R"({"state": 3})"}) {
    write_file_atomic(run_ / "state.json", content);
    const RunLock lock(run_);
    EXPECT_FALSE(fs::exists(run_ / "state.json")) << content;
    EXPECT_EQ(read_file(run_ / "state.json.damaged"), content);
  }
}

// Records of a shard that the journal has as done are not missed silently.
TEST_F(ControllerTest, LostRecordsOfAStageAtWorkAreItsFailure) {
  FakeExecutor first;
  interrupted_ = [&] { return first.items_run >= 24; };
  spec_.stages.resize(1);
  EXPECT_EQ(run(first).kind, RunOutcome::Kind::kInterrupted);
  interrupted_ = [] { return false; };
  const fs::path left = job_folder(*fs::directory_iterator(run_ / "stages/a"), 0, "left");
  fs::remove_all(left / "0");
  FakeExecutor second;
  const RunOutcome outcome = run(second);
  EXPECT_EQ(outcome.kind, RunOutcome::Kind::kFailed);
  const std::string failure = outcome.state.at("stages").at(0).value("failure", "");
  EXPECT_NE(failure.find((left / "0").string()), std::string::npos) << failure;
  EXPECT_NE(failure.find("--force a"), std::string::npos) << failure;
  selection_.force = {"a"};
  FakeExecutor third;
  EXPECT_EQ(run(third).kind, RunOutcome::Kind::kFinished);
  EXPECT_EQ(third.items_run, kItemsAStage);
}

TEST_F(ControllerTest, AnOutputThatWasChangedIsStale) {
  FakeExecutor first, second, third;
  run(first);
  const fs::path folder = *fs::directory_iterator(run_ / "stages/a");
  const Json before = output("a");
  Json changed = before;
  changed["sum"] = changed["sum"].get<int>() + 1;
  write_file_atomic(folder / "output.json", changed.dump());
  const auto plans = plan::plan_stages(spec_, plan::digest_datasets(spec_), read_history(run_), {});
  EXPECT_EQ(plans[0].action, plan::Action::kRun);
  EXPECT_NE(plans[0].reason.find("output.json: changed since it was written"), std::string::npos)
      << plans[0].reason;
  EXPECT_EQ(run(second).kind, RunOutcome::Kind::kFinished);
  EXPECT_EQ(second.items_run, kItemsAStage) << "its output is as it was: b is up to date";
  EXPECT_EQ(output("a"), before);
  EXPECT_EQ(run(third).kind, RunOutcome::Kind::kNothingToDo);
}

TEST_F(ControllerTest, AChangedOutputCanBeAccepted) {
  FakeExecutor first, second, third;
  spec_.stages.resize(1);
  run(first);
  write_file_atomic(fs::path(*fs::directory_iterator(run_ / "stages/a")) / "output.json", R"({"sum":1})");
  selection_.accept = {"a"};
  run(second);
  selection_.accept.clear();
  EXPECT_EQ(run(third).kind, RunOutcome::Kind::kNothingToDo);
  EXPECT_EQ(second.items_run + third.items_run, 0);
  EXPECT_EQ(output("a").at("sum"), 1);
}

TEST_F(ControllerTest, GarbageInWhatCanBeMadeAnewIsSetAside) {
  FakeExecutor first;
  run(first);
  const fs::path inputs = fs::path(*fs::directory_iterator(run_ / "stages/a")) / "inputs.json";
  for (const char* content : {"garbage", "[1]", R"({"stages": [3]})"}) {
    write_file_atomic(run_ / "state.json", content);
    write_file_atomic(inputs, content);
    FakeExecutor second, third;
    EXPECT_EQ(run(second).kind, RunOutcome::Kind::kFinished) << content;
    EXPECT_EQ(second.items_run, kItemsAStage) << content;
    EXPECT_EQ(read_file(run_ / "state.json.damaged"), content);
    EXPECT_EQ(read_json_file(run_ / "state.json").at("state"), "finished");
    EXPECT_EQ(run(third).kind, RunOutcome::Kind::kNothingToDo) << content;
  }
}

TEST_F(ControllerTest, ToleratedShardsLeaveNullRecords) {
  spec_.stages[0].tolerate = 0.5;
  FakeExecutor executor;
  executor.program = [](const JobFile& job, const Item& item) -> Json {
    if (job.stage == "a" && item.id == "i5") throw FakeExecutor::Fail{EndCause::kUserError, 2};
    return {{"value", 1}};
  };
  EXPECT_EQ(run(executor).kind, RunOutcome::Kind::kFinished);
  EXPECT_EQ(output("a").at("lost"), 6);
}

TEST_F(ControllerTest, InterruptedRunGoesOn) {
  FakeExecutor executor;
  interrupted_ = [&] { return executor.items_run >= 20; };
  EXPECT_EQ(run(executor).kind, RunOutcome::Kind::kInterrupted);
  EXPECT_EQ(read_json_file(run_ / "state.json").at("state"), "interrupted");
  FakeExecutor second;
  interrupted_ = [] { return false; };
  EXPECT_EQ(run(second).kind, RunOutcome::Kind::kFinished);
  EXPECT_EQ(executor.items_run + second.items_run, 3 * kItemsAStage);
}

TEST_F(ControllerTest, BudgetStopsTheRunBeforeItIsPassedAndALargerOneGoesOn) {
  for (workflow::StageSpec& stage : spec_.stages) stage.train = {.gpus = 2, .time_s = 1800};
  FakeExecutor executor;
  std::size_t most = 0;
  executor.before_poll = [&] { most = std::max(most, executor.queue.size()); };
  spec_.budget.gpu_hours = 1.002;  // 7.2 GPU-seconds more than a shard may take; in fact each takes one
  const RunOutcome first = run(executor);
  EXPECT_EQ(first.kind, RunOutcome::Kind::kOverBudget);
  EXPECT_LE(most, 1u);
  EXPECT_NEAR(first.gpu_hours * 3600, 8, 1e-6) << "the first with which another could pass it";
  EXPECT_EQ(read_json_file(run_ / "state.json").at("state"), "over budget");
  spec_.budget.gpu_hours = 100;
  FakeExecutor second;
  const RunOutcome last = run(second);
  EXPECT_EQ(last.kind, RunOutcome::Kind::kFinished);
  EXPECT_EQ(executor.items_run + second.items_run, 3 * kItemsAStage);
  EXPECT_NEAR(last.gpu_hours * 3600, static_cast<double>(executor.submitted.size() + second.submitted.size()),
              1e-6);
}

// "server", which "a" asks; it is up when its shard is in flight.
class ServiceControllerTest : public ControllerTest {
 protected:
  ServiceControllerTest() {
    executor_.goes_on = [](const run::ShardStart& start) {
      return read_job_file(start.job_file).job == "service";
    };
    executor_.before_poll = [this] {
      for (const run::ShardStart& start : executor_.queue)
        if (executor_.goes_on(start))
          write_file_atomic(start.job_file.parent_path() / "service.json", "{\"url\": \"http://x/v1\"}\n");
    };
    make_stage_ = [](stages::StageInputs inputs) -> std::unique_ptr<stages::Stage> {
      if (inputs.spec.kind == "service") return stages::make_stage(std::move(inputs));
      return std::make_unique<SumStage>(std::move(inputs));
    };
  }
  void SetUp() override {
    ControllerTest::SetUp();
    workflow::StageSpec service = spec_.stages.front();
    service.name = service.base_name = "server";
    service.kind = "service";
    service.settings = workflow::ServiceSettings{.argv = {"serve", "{port}"}};
    spec_.stages.front().needs = {"server"};
    spec_.stages.insert(spec_.stages.begin(), std::move(service));
    gpus_ = {{"H100", 1}};
    const fs::path program = run_.parent_path() / "warpsmith-service";
    write_file_atomic(program, "");
    fs::permissions(program, fs::perms::owner_all);
  }
  workflow::StageSpec& stage(std::size_t number) { return spec_.stages[number]; }
  fs::path service_folder() const {
    for (const auto& entry : fs::directory_iterator(run_ / "stages/server")) return entry.path();
    return {};
  }
  RunOutcome run_it() {
    ControllerParts parts = parts_of(spec_, run_, executor_, observer_);
    parts.programs = run_.parent_path();
    parts.make_stage = make_stage_;
    parts.gpus = gpus_;
    parts.slots = 2;
    return Controller(std::move(parts)).run();
  }
  FakeExecutor executor_;
};

TEST_F(ServiceControllerTest, ItEndsBehindTheLastWhoAsksIt) {
  EXPECT_EQ(run_it().kind, RunOutcome::Kind::kFinished);
  EXPECT_EQ(executor_.items_run, 3 * kItemsAStage);
  EXPECT_EQ(executor_.cancelled.size(), 1u);
  const Json usage = read_json_file(service_folder() / "usage.json");  // for `plan`
  EXPECT_EQ(usage.at("kind"), "service");
  EXPECT_EQ(usage.at("jobs").at("service").at("attempts"), 1);
  const std::size_t submitted = executor_.submitted.size();
  EXPECT_EQ(run_it().kind, RunOutcome::Kind::kNothingToDo);
  EXPECT_EQ(executor_.submitted.size(), submitted) << "nobody asks it";
}

// It holds its own time limit back, once.
TEST_F(ServiceControllerTest, ABudgetForItIsEnoughForThoseWhoNeedNoGpu) {
  stage(0).train = {.gpus = 1, .gpu_type = "H100", .time_s = 12 * 3600};
  spec_.budget.gpu_hours = 20;
  EXPECT_EQ(run_it().kind, RunOutcome::Kind::kFinished);
  EXPECT_EQ(executor_.items_run, 3 * kItemsAStage);
}

TEST_F(ServiceControllerTest, WhatFindsNoRoomBesideItIsRefusedBeforeItBegins) {
  const auto refused = [&] {
    try {
      run_it();
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  stage(0).service = {.gpus = 1, .gpu_type = "H100"};
  stage(2).train = {.gpus = 1, .gpu_type = "H100"};  // "b" needs "a": the server has ended
  EXPECT_EQ(refused(), "");
  stage(3).train = {.gpus = 1, .gpu_type = "H100"};  // "other" may run meanwhile
  stage(3).resolved["rounds"] = 2;
  stage(1).resolved["rounds"] = 2;
  EXPECT_EQ(
      refused(),
      "command jobs of stage other cannot run: service server has 1 of this machine's 1 GPUs of type H100, "
      "and 1 are asked for beside it");
  stage(3).train = {};
  stage(1).train.cpus = 2;
  EXPECT_THAT(refused(),
              ::testing::HasSubstr("service server has 1 of this machine's 2 CPUs, and 2 are asked for"));
}

TEST_F(ControllerTest, TheScarcestGpusComeFirstAndNoTypeTakesAllTheRoom) {
  spec_.stages.clear();
  for (const auto& [name, type] :
       {std::pair("many", "H100"), std::pair("few", "H20"), std::pair("cpu", "")}) {
    add(name).train = {.gpus = *type == '\0' ? 0 : 1, .gpu_type = type};
    spec_.stages.back().resolved["rounds"] = 1;
  }
  FakeExecutor executor;
  gpus_ = {{"H100", 8}, {"H20", 1}};
  make_stage_ = [](stages::StageInputs inputs) { return std::make_unique<CommandStage>(std::move(inputs)); };
  EXPECT_EQ(run(executor).kind, RunOutcome::Kind::kFinished);
  ASSERT_EQ(executor.submitted.size(), 18u);
  // Of four: one is kept for each of the others.
  std::vector<std::string> first;
  for (std::size_t i = 0; i < 4; ++i) first.push_back(read_job_file(executor.submitted[i].job_file).stage);
  EXPECT_EQ(first, (std::vector<std::string>{"few", "few", "many", "cpu"}));
}

// Of three GPUs one shard each, though there are more CPUs: a GPU does not start work sooner for many.
TEST_F(ControllerTest, AsManyShardsAsGpus) {
  class ShortItems : public CommandStage {
   public:
    using CommandStage::CommandStage;
    stages::StageStep start() override {
      stages::StageStep step = CommandStage::start();
      step.jobs[0].expected_item_s = 5;
      return step;
    }
  };
  spec_.stages.clear();
  add("one").train = {.gpus = 1, .gpu_type = "H20"};
  add("three").train = {.gpus = 1, .gpu_type = "H100"};
  add("pairs").train = {.gpus = 2, .gpu_type = "H100"};
  add("cpu");
  gpus_ = {{"H100", 3}, {"H20", 1}};
  make_stage_ = [](stages::StageInputs inputs) { return std::make_unique<ShortItems>(std::move(inputs)); };
  FakeExecutor executor;
  EXPECT_EQ(run(executor).kind, RunOutcome::Kind::kFinished);
  std::map<std::string, int> shards;
  for (const run::ShardStart& start : executor.submitted) ++shards[read_job_file(start.job_file).stage];
  EXPECT_EQ(shards, (std::map<std::string, int>{{"cpu", 2}, {"one", 1}, {"pairs", 1}, {"three", 3}}));
}

// The real stage: rows without a shard, and the same again once there is a device.
TEST_F(ControllerTest, AStageWithoutItsDeviceEndsWithRowsThatSaySo) {
  spec_.stages.clear();
  workflow::StageSpec& stage = add("sweep-H20");
  stage.base_name = "sweep";
  stage.kind = "measure";
  stage.settings = workflow::MeasureSettings{.candidates_of_run = "/results/first"};
  stage.dataset = {.folder = fs::path(WARPSMITH_SOURCE_DIR) / "datasets", .train = {"square_row_sum"}};
  stage.taken = std::make_shared<const workflow::TakenCandidates>(workflow::TakenCandidates{
      {make_plan_candidate("square_row_sum", "x", {"dataset", "collect", 0, "", ""})}, "digest"});
  stage.device = "H20";
  workflow::resolve_devices(spec_, nullptr);
  make_stage_ = stages::make_stage;
  FakeExecutor executor;
  EXPECT_EQ(run(executor).kind, RunOutcome::Kind::kFinished);
  EXPECT_TRUE(executor.submitted.empty());
  const store::Results results = store::current_versions(store::read_run(run_));
  ASSERT_EQ(results.measurements.size(), 1u);
  EXPECT_EQ(results.measurements[0].value.verdict, Verdict::kNotMeasured);
  EXPECT_EQ(results.measurements[0].value.detail, "no device: this machine has no H20");
  ASSERT_EQ(results.stages.size(), 1u);
  EXPECT_EQ(results.stages[0].base, "sweep");
  EXPECT_EQ(results.stages[0].device_found, "none");
  EXPECT_EQ(read_json_file(run_ / "state.json").at("stages").at(0).at("device_found"), "none");
  EXPECT_EQ(run(executor).kind, RunOutcome::Kind::kNothingToDo);
  const plan::History history = read_history(run_);
  workflow::SiteSpec site;
  site.gpus["H20"].twin = true;
  spec_.stages[0].device_found = workflow::DeviceFound::kUnasked;
  spec_.stages[0].lacks.clear();
  workflow::resolve_devices(spec_, &site);
  EXPECT_THAT(plan::plan_stages(spec_, plan::digest_datasets(spec_), history)[0].reason,
              ::testing::StartsWith("the device found: none -> twin"));
}

TEST_F(ControllerTest, ABlockedStageStopsTheRunBeforeItBegins) {
  spec_.stages[0].blocked = "there is no run first";
  FakeExecutor executor;
  try {
    run(executor);
    FAIL() << "it went on";
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), kExitUsage);
    EXPECT_STREQ(e.what(), "stage a cannot run: there is no run first");
  }
  EXPECT_TRUE(executor.submitted.empty());
  selection_.only = {"other"};
  EXPECT_EQ(run(executor).kind, RunOutcome::Kind::kFinished) << "it is not to run";
}

TEST_F(ControllerTest, DeletedRunFolderIsAClearError) {
  FakeExecutor executor;
  executor.before_poll = [&] {
    if (executor.items_run >= 12) fs::remove_all(run_);
  };
  try {
    run(executor);
    FAIL() << "it went on without its folder";
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), kExitEnvironment);
    EXPECT_NE(std::string(e.what()).find(run_.string()), std::string::npos) << e.what();
  }
}

TEST_F(ControllerTest, ControllerThatWasOvertakenSubmitsNothingMore) {
  FakeExecutor executor;
  std::size_t submitted = 0;
  executor.before_poll = [&] {
    if (executor.items_run >= 12 && create_file_exclusive(run_ / "journal/2.jsonl", ""))
      submitted = executor.submitted.size();
  };
  try {
    run(executor);
    FAIL() << "it went on";
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), kExitBusy) << e.what();
  }
  EXPECT_EQ(executor.submitted.size(), submitted);
}

// Dies at random points of random lives; the results must be those of a run that nobody killed, and no item
// runs twice.
TEST_F(ControllerTest, RandomKills) {
  struct Killed {};
  FakeExecutor undisturbed;
  run(undisturbed);
  const Json expected = {output("a"), output("b"), output("other")};
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    fs::remove_all(run_);
    make_folders(run_);
    Random random(seed);
    int items = 0, kills = 0;
    for (;;) {
      FakeExecutor executor;
      int left = static_cast<int>(random.below(25));
      const bool in_program = random.below(2) == 0;
      executor.before_poll = [&] {
        if (!in_program && --left < 0) throw Killed{};
      };
      executor.program = [&](const JobFile&, const Item& item) -> Json {
        if (in_program && --left < 0) throw Killed{};
        return {{"value", item.value.at("x").get<int>() * 2}};
      };
      try {
        const auto kind = run(executor).kind;
        items += executor.items_run;
        EXPECT_EQ(kind, RunOutcome::Kind::kFinished);
        break;
      } catch (const Killed&) {
        items += executor.items_run;
        ASSERT_LT(++kills, 200);
      }
    }
    EXPECT_EQ(items, 3 * kItemsAStage) << "seed " << seed << ", " << kills << " kills";
    EXPECT_EQ(Json({output("a"), output("b"), output("other")}), expected) << "seed " << seed;
  }
}

TEST_F(ControllerTest, SecondControllerIsRefused) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const RunLock lock(run_);
    [[maybe_unused]] const auto n = ::write(ready[1], "x", 1);
    ::pause();
    ::_exit(0);
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(RunLock::holder(run_), child);
  try {
    const RunLock lock(run_);
    ADD_FAILURE() << "two controllers have it";
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), kExitBusy);
    EXPECT_NE(std::string(e.what()).find(std::to_string(child)), std::string::npos) << e.what();
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const RunLock lock(run_);  // at once
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace warpsmith::controller
