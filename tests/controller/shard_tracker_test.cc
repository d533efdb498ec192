// What becomes of shards: the tracker alone, with a log in memory.
#include "shard_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory_log.h"
#include "scratch.h"
#include "warpsmith/records/shard.h"

namespace warpsmith::controller {
namespace {

using namespace std::chrono_literals;
using run::EventKind;
using run::ShardEvent;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One stage `a` with a job of three shards of two items each.
class ShardTrackerTest : public testing::Test {
 protected:
  explicit ShardTrackerTest(bool outlives = false) : executor_(outlives) {
    workflow::StageSpec stage;
    stage.name = "a";
    stage.kind = "command";
    stage.retry.times[EndCause::kCrash] = 1;
    stage.retry.times[EndCause::kFailed] = 0;
    stage.settings = workflow::CommandSettings{};
    spec_.stages.push_back(std::move(stage));
    ControllerParts parts;
    parts.spec = &spec_;
    parts.run = scratch_.path();
    parts.executor = &executor_;
    parts.observer = &messages_;
    parts.interrupted = [this] { return interrupted_; };
    core_.emplace(std::move(parts));
    core_->log = &log_;
    tracker_.emplace(*core_, [this] { return now_; });
  }
  // As StageDriver would; `known`: the stage has asked for it in this life.
  void add_job(bool known = true) {
    core_->say({.kind = EventKind::kStageStarted, .name = "a", .hash = std::string(64, '0')});
    core_->say(
        {.kind = EventKind::kJobAdded, .end = 3, .open = 6, .name = "work", .hash = "d", .text = "2,2,2"});
    LiveJob job;
    job.folder = job_folder(stage_folder(scratch_.path(), "a", std::string(64, '0')), 0, "work");
    job.file.job = "work";
    job.file.token = "ws-1-0";
    job.file.shards = {{0, 2}, {2, 4}, {4, 6}};
    job.program = "/bin/true";
    job.ids = {"i0", "i1", "i2", "i3", "i4", "i5"};
    job.resources = {.cpus = 2, .memory_bytes = 1000};
    job.memory_factor = 1.5;
    std::string items;
    for (const std::string& id : job.ids) items += Json{{"id", id}}.dump() + "\n";
    make_folders(job.folder);
    write_file_atomic(job.folder / "items.jsonl", items);
    write_file_atomic(job.folder / "job.json", to_json(job.file).dump());
    folder_ = job.folder;
    if (known) tracker_->add(0, std::move(job));
  }
  // The shard's program writes so many records, and its last word where it has all.
  void write_records(std::uint32_t shard, std::size_t count) {
    ShardSession session(folder_ / "job.json", shard);
    for (std::size_t i = 0; i < count; ++i) session.write(session.items()[i], Json{{"value", 1}});
    if (count == session.items().size()) session.finish();
  }
  void submit_all() { tracker_->submit(core_->reactor.next(10).submit); }
  void end(std::uint32_t shard, EndCause cause, int exit_code = 0, const std::string& detail = "") {
    tracker_->on_event({.kind = ShardEvent::Kind::kEnded,
                        .key = {0, shard},
                        .cause = cause,
                        .exit_code = exit_code,
                        .wall_s = 2,
                        .detail = detail});
  }
  std::vector<std::uint32_t> open_by_end() const {
    std::vector<std::uint32_t> out;
    for (const run::Event& event : log_.of(EventKind::kShardEnded)) out.push_back(event.open);
    return out;
  }

  Scratch scratch_;
  workflow::WorkflowSpec spec_;
  IdleExecutor executor_;
  Messages messages_;
  MemoryLog log_;
  std::optional<RunCore> core_;
  std::optional<ShardTracker> tracker_;
  std::filesystem::path folder_;
  SteadyTime now_{1h};
  bool interrupted_ = false;
};

TEST_F(ShardTrackerTest, WhatStartsIsLoggedFirstAndNamedByItsSubmission) {
  add_job();
  tracker_->submit({{.job = 0, .begin = 0, .end = 2}, {.job = 0, .begin = 2, .end = 3, .memory_retries = 2}});
  const auto submitted = log_.of(EventKind::kSubmitted);
  ASSERT_EQ(submitted.size(), 2u) << "one event a range";
  EXPECT_EQ(submitted[0].end, 2u);
  EXPECT_EQ(submitted[0].memory, 1000u);
  EXPECT_EQ(submitted[1].memory, 2250u) << "1.5 times as much for each retry that lacked memory";
  ASSERT_EQ(log_.handed_over.size(), 3u);
  EXPECT_EQ(log_.handed_over[1].token, "ws-1-0-1");
  EXPECT_EQ(log_.handed_over[2].token, "ws-1-0-2");
  EXPECT_EQ(log_.handed_over[2].resources.memory_bytes, 2250u);
  EXPECT_EQ(log_.handed_over[2].log, folder_ / "2/log.txt");
}

TEST_F(ShardTrackerTest, AnEndIsJudgedByTheRecords) {
  add_job();
  submit_all();
  write_records(0, 2);
  write_records(1, 1);
  end(0, EndCause::kFinished);
  end(1, EndCause::kFailed, 3, "no luck");
  EXPECT_THAT(open_by_end(), ElementsAre(0, 1));
  ASSERT_EQ(messages_.list.size(), 1u);
  EXPECT_THAT(messages_.list[0], HasSubstr("a 0/work/1: failed (exit code 3): no luck, 1 of 2 items left, no "
                                           "retries left; log: "));
  EXPECT_EQ(tracker_->why_failed(0), "a 0/work/1 ended by failed after 1 attempt: no luck");
  EXPECT_EQ(core_->phase_s["work"], 4);
  EXPECT_FALSE(tracker_->disk_was_full());
}

TEST_F(ShardTrackerTest, AShellsWordForASignalIsACrash) {
  add_job();
  submit_all();
  end(0, EndCause::kFailed, 128 + 9);
  const auto ends = log_.of(EventKind::kShardEnded);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].cause, EndCause::kCrash);
  EXPECT_EQ(ends[0].signal, 9);
  EXPECT_THAT(messages_.list[0], HasSubstr("crash (signal 9), 2 of 2 items left, started again"));
}

TEST_F(ShardTrackerTest, ACrashWhileTheRunIsInterruptedIsNone) {
  add_job();
  submit_all();
  interrupted_ = true;
  end(0, EndCause::kCrash);
  EXPECT_EQ(log_.of(EventKind::kShardEnded)[0].cause, EndCause::kCancelled);
  EXPECT_THAT(messages_.list, IsEmpty());
}

TEST_F(ShardTrackerTest, AFullDiskIsNoFaultOfTheRuns) {
  add_job();
  submit_all();
  end(2, EndCause::kDiskFull);
  EXPECT_TRUE(tracker_->disk_was_full());
}

TEST_F(ShardTrackerTest, AtAnEndOfTheRunAllThatIsInFlightIsCancelled) {
  add_job();
  submit_all();
  write_records(0, 2);
  tracker_->end_all();
  EXPECT_THAT(open_by_end(), ElementsAre(0, 2, 2));
  EXPECT_THAT(core_->reactor.unresolved(), IsEmpty());
}

// On a cluster shards outlive the controller, and files may be late.
class ClusterShardTrackerTest : public ShardTrackerTest {
 protected:
  ClusterShardTrackerTest() : ShardTrackerTest(true) { core_->parts.late_records_s = 60; }
};

TEST_F(ClusterShardTrackerTest, RecordsMayComeLateButNotTooLate) {
  add_job();
  submit_all();
  end(0, EndCause::kFinished);
  end(1, EndCause::kFinished);
  EXPECT_THAT(open_by_end(), IsEmpty()) << "their records may be on their way";
  now_ += 5s;
  write_records(0, 2);
  tracker_->look_at_late();
  EXPECT_THAT(open_by_end(), ElementsAre(0));
  now_ += 50s;
  tracker_->look_at_late();
  EXPECT_THAT(open_by_end(), ElementsAre(0));
  now_ += 10s;
  tracker_->look_at_late();
  EXPECT_THAT(open_by_end(), ElementsAre(0, 2));
  EXPECT_THAT(messages_.list.back(), HasSubstr("ended without all of its records"));
}

TEST_F(ClusterShardTrackerTest, WhatAnEarlierLifeSubmittedIsGoneOnWith) {
  add_job(false);
  const auto before = [&](run::Event event) {  // as the journal tells it
    core_->reactor.apply(event);
    tracker_->replay(event);
  };
  before({.kind = EventKind::kSubmitted, .end = 3, .submission = 7});
  core_->reactor.apply({.kind = EventKind::kOpened});
  tracker_->resolve_unfinished();
  ASSERT_EQ(executor_.attached.size(), 3u);
  EXPECT_EQ(executor_.attached[2].token, "ws-1-0-7") << "as the earlier life named it";
  EXPECT_THAT(messages_.list.back(), HasSubstr("attached to 3 shards"));

  write_records(1, 2);
  end(1, EndCause::kFinished);
  EXPECT_THAT(open_by_end(), IsEmpty()) << "its stage may yet ask for the job";
  LiveJob job;
  job.folder = folder_;
  job.file = read_job_file(folder_ / "job.json");
  job.ids = {"i0", "i1", "i2", "i3", "i4", "i5"};
  tracker_->add(0, std::move(job));
  tracker_->look_at_early();
  EXPECT_THAT(open_by_end(), ElementsAre(0));
  tracker_->submit({{.job = 0, .begin = 0, .end = 1}});
  EXPECT_EQ(log_.handed_over.back().token, "ws-1-0-8") << "submissions are counted over all lives";
}

TEST_F(ClusterShardTrackerTest, WhatNobodyAsksForIsCancelledOnce) {
  add_job(false);
  const run::Event submitted{.kind = EventKind::kSubmitted, .end = 2, .submission = 1};
  core_->reactor.apply(submitted);
  tracker_->replay(submitted);
  core_->reactor.apply({.kind = EventKind::kOpened});
  tracker_->resolve_unfinished();
  tracker_->cancel_orphans();
  EXPECT_EQ(executor_.cancelled.size(), 2u);
  tracker_->cancel_orphans();
  EXPECT_EQ(executor_.cancelled.size(), 2u);
  end(0, EndCause::kCancelled);
  EXPECT_THAT(open_by_end(), ElementsAre(2)) << "by what its records say";
}

}  // namespace
}  // namespace warpsmith::controller
