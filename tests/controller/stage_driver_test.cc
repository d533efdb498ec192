// Stages from their turn to their result: the driver alone, with stages of the test and a log in memory.
#include "stage_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory_log.h"
#include "scratch.h"
#include "services.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/records/shard.h"

namespace warpsmith::controller {
namespace {

using run::EventKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

stages::JobRequest request_of(int items, const std::string& name = "work") {
  stages::JobRequest request{.round = 0, .job = name, .program = "/bin/true", .expected_item_s = 1000};
  for (int i = 0; i < items; ++i) request.items.push_back({{"id", "i" + std::to_string(i)}});
  return request;
}

// Does what the test says.
class TestStage : public stages::Stage {
 public:
  std::function<stages::StageStep()> at_start;
  std::function<stages::StageStep(const stages::JobResult&)> at_job;
  stages::StageStep start() override { return at_start(); }
  stages::StageStep on_job(const stages::JobResult& result) override { return at_job(result); }
};

class StageDriverTest : public testing::Test {
 protected:
  StageDriverTest() {
    for (const char* name : {"a", "b"}) {
      workflow::StageSpec stage;
      stage.name = stage.base_name = name;
      stage.kind = "command";
      stage.settings = workflow::CommandSettings{};
      stage.resolved = {{"stage", name}};
      stage.retry.times[EndCause::kFailed] = 0;
      spec_.stages.push_back(std::move(stage));
    }
    spec_.stages[1].needs = {"a"};
    at_start_ = [] { return stages::StageStep{.jobs = {request_of(3)}, .finished = false, .output = {}}; };
    at_job_ = [this](const stages::JobResult& result) {
      told_.push_back(result);
      return stages::StageStep{.jobs = {}, .finished = true, .output = {{"stage", "a"}}};
    };
    begin_life();
  }
  void begin_life() {
    ControllerParts parts;
    parts.spec = &spec_;
    parts.run = scratch_.path();
    parts.executor = &executor_;
    parts.observer = &messages_;
    parts.run_id = "1";
    parts.make_stage = [this](stages::StageInputs inputs) {
      upstream_ = inputs.upstream_order;
      auto stage = std::make_unique<TestStage>();
      stage->at_start = at_start_;
      stage->at_job = at_job_;
      return stage;
    };
    driver_.reset();
    tracker_.reset();
    core_.emplace(std::move(parts));
    core_->log = &log_;
    tracker_.emplace(*core_);
    driver_.emplace(
        *core_, *tracker_,
        StageDriver::Hears{.changed = [](bool) {}, .result = [this](bool all) { results_ += all; }});
    driver_->select();
  }
  // The shards' programs write their records.
  void run_job(std::uint32_t number) {
    const LiveJob& job = tracker_->jobs().at(number);
    tracker_->submit(core_->reactor.next(10).submit);
    for (std::uint32_t s = 0; s < job.file.shards.size(); ++s) {
      ShardSession session(job.folder / "job.json", s);
      for (const Item& item : session.items()) session.write(item, Json{{"value", item.id}});
      session.finish();
      tracker_->on_event({.kind = run::ShardEvent::Kind::kEnded, .key = {number, s}});
    }
  }

  Scratch scratch_;
  workflow::WorkflowSpec spec_;
  IdleExecutor executor_;
  Messages messages_;
  MemoryLog log_;
  std::function<stages::StageStep()> at_start_;
  std::function<stages::StageStep(const stages::JobResult&)> at_job_;
  std::vector<stages::JobResult> told_;
  std::vector<std::string> upstream_;
  int results_ = 0;
  std::optional<RunCore> core_;
  std::optional<ShardTracker> tracker_;
  std::optional<StageDriver> driver_;
};

TEST_F(StageDriverTest, WhatAStageAsksForIsWrittenBeforeItIsLogged) {
  driver_->begin(0);
  const LiveJob& job = tracker_->jobs().at(0);
  EXPECT_EQ(read_items(job.folder / "items.jsonl", 0, 3).size(), 3u);
  const JobFile file = read_job_file(job.folder / "job.json");
  EXPECT_EQ(file.token, "ws-1-0");
  EXPECT_EQ(file.stage, "a");
  const auto added = log_.of(EventKind::kJobAdded);
  ASSERT_EQ(added.size(), 1u);
  EXPECT_EQ(added[0].open, 3u);
  EXPECT_EQ(added[0].end, file.shards.size());
  EXPECT_TRUE(std::filesystem::exists(driver_->stages()[0].folder / "inputs.json"));
}

TEST_F(StageDriverTest, ItsResultIsOnDiskBeforeItIsLogged) {
  driver_->begin(0);
  run_job(0);
  driver_->feed(0);
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0].items[2].record.at("value"), "i2") << "in the order of the items";
  const auto finished = log_.of(EventKind::kStageFinished);
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].hash, sha256_hex(read_file(driver_->stages()[0].folder / "output.json")));
  EXPECT_EQ(log_.commits, 1) << "who needs it may begin";
  EXPECT_EQ(results_, 1);
  EXPECT_EQ(driver_->stages()[0].output_digest, finished[0].hash);
}

TEST_F(StageDriverTest, WhoNeedsItGetsItsOutput) {
  driver_->begin(0);
  run_job(0);
  driver_->feed(0);
  driver_->begin(1);
  EXPECT_THAT(upstream_, ElementsAre("a"));
  begin_life();
  const auto jobs = log_.of(EventKind::kJobAdded).size();
  driver_->begin(0);
  EXPECT_FALSE(driver_->stages()[0].ran) << "its result is there";
  EXPECT_EQ(log_.of(EventKind::kJobAdded).size(), jobs);
}

TEST_F(StageDriverTest, WhatAStageThrowsIsItsFailure) {
  at_start_ = []() -> stages::StageStep { throw Error("it does not like Mondays"); };
  driver_->begin(0);
  EXPECT_EQ(log_.of(EventKind::kStageFailed).at(0).text, "it does not like Mondays");
  EXPECT_THAT(messages_.list, ElementsAre("stage a failed: it does not like Mondays"));
}

TEST_F(StageDriverTest, AStageThatAsksTwiceOrForNothingHasFailed) {
  at_start_ = [] {
    return stages::StageStep{.jobs = {request_of(3), request_of(3)}, .finished = false, .output = {}};
  };
  driver_->begin(0);
  EXPECT_THAT(log_.of(EventKind::kStageFailed).at(0).text,
              HasSubstr("asks for the job work of round 0 twice"));
  at_start_ = [] { return stages::StageStep{.jobs = {}, .finished = false, .output = {}}; };
  begin_life();
  driver_->begin(0);
  EXPECT_EQ(log_.of(EventKind::kStageFailed).at(1).text, "it neither finished nor asked for more work");
}

TEST_F(StageDriverTest, ItFailsByItsShards) {
  driver_->begin(0);
  tracker_->submit(core_->reactor.next(10).submit);
  tracker_->on_event(
      {.kind = run::ShardEvent::Kind::kEnded, .key = {0, 0}, .cause = EndCause::kFailed, .exit_code = 1});
  driver_->fail_by_shards(0);
  EXPECT_THAT(driver_->stages()[0].failure, HasSubstr("a 0/work/0 ended by failed after 1 attempt"));
}

// ---- services

struct ThreeStages {
  explicit ThreeStages(int machine) : cpus(machine) {
    for (const char* name : {"server", "asks", "beside"}) {
      workflow::StageSpec stage;
      stage.name = name;
      stage.kind = std::string(name) == "server" ? "service" : "command";
      stage.settings = workflow::CommandSettings{};
      if (stage.kind == "service") stage.settings = workflow::ServiceSettings{};
      Resources& takes = stage.kind == "service" ? stage.service : stage.train;
      takes.cpus = 2;
      takes.memory_bytes = 2ull << 30;
      spec.stages.push_back(std::move(stage));
    }
    spec.stages[1].needs = {"server"};
  }
  std::string refused() const {
    std::vector<plan::StagePlan> plans(spec.stages.size());
    for (plan::StagePlan& plan : plans) plan.action = plan::Action::kRun;
    try {
      refuse_without_room(spec, plans, {cpus, memory_bytes, {}, shards});
      return "";
    } catch (const Error& e) {
      return e.what();
    }
  }
  workflow::WorkflowSpec spec;
  int cpus;
  std::uint64_t memory_bytes = 0;
  std::size_t shards = 0;
};

TEST(ServiceRoom, WhatMayRunBesideAServiceNeedsRoomBesideIt) {
  EXPECT_EQ(ThreeStages(4).refused(), "");
  EXPECT_THAT(ThreeStages(3).refused(),
              HasSubstr("command jobs of stage asks cannot run: service server has 2 of this "
                        "machine's 3 CPUs, and 2 are asked for beside it"));
  ThreeStages before(3);
  before.spec.stages[1].train.cpus = 1;
  before.spec.stages[2].train.cpus = 3;
  EXPECT_THAT(before.refused(), HasSubstr("stage beside")) << "it may run while the server is up";
  std::swap(before.spec.stages[1], before.spec.stages[2]);
  before.spec.stages[2].needs = {"server", "beside"};  // it has ended when the server starts
  EXPECT_EQ(before.refused(), "");

  ThreeStages small(4);
  small.memory_bytes = 4ull << 30;
  EXPECT_EQ(small.refused(), "");
  small.memory_bytes = 3ull << 30;
  EXPECT_THAT(small.refused(),
              HasSubstr("service server has 2.0 GiB of this machine's 3.0 GiB of free memory, "
                        "and 2.0 GiB are asked for beside it"));
}

TEST(ServiceRoom, AQueueThatTheServicesFillHasNoRoom) {
  ThreeStages run(4);
  run.shards = 2;
  EXPECT_EQ(run.refused(), "");
  run.shards = 1;
  EXPECT_THAT(run.refused(),
              HasSubstr("service server has 1 of the 1 jobs that this user may have in the queue"));
}

}  // namespace
}  // namespace warpsmith::controller
