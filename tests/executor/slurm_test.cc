// The Slurm executor over a cluster in memory: what it asks of Slurm, and what it makes of every answer. The
// same with real daemons: tests/slurm.
#include "warpsmith/executor/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <future>
#include <thread>

#include "fake_cluster.h"
#include "scratch.h"
#include "slurm/token_bucket.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/json.h"
#include "warpsmith/executor/batch.h"
#include "warpsmith/executor/last_words.h"

namespace warpsmith::executor {
namespace {

using run::ShardEvent;
using run::ShardKey;
using run::ShardStart;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class Slurm : public testing::Test {
 protected:
  Slurm() {
    options_.site.name = "test";
    options_.site.requests_per_minute = 6000;  // a test does not wait for tokens
    options_.site.cpu.partition = "cpu";
    options_.programs = "/opt/warpsmith/bin";
    options_.run = scratch_ / "";
    options_.prefix = "ws-run-";
    options_.file_grace_s = 0.3;
    options_.first_status_s = 0.1;
  }

  SlurmExecutor make() { return SlurmExecutor(std::make_unique<FakeCluster>(slurm_), options_); }

  // As the cluster tells of the first task of `array`, whose name is the token of shard().
  SlurmTask task_of_shard_0(std::uint32_t array, SlurmState state) const {
    SlurmTask task;
    task.job = task.array = array;
    task.tasks = {0};
    task.name = shard(0).token;
    task.state = state;
    return task;
  }
  ShardStart shard(std::uint32_t n, const std::string& token = "ws-run-0-1") const {
    ShardStart out;
    out.key = {0, n};
    out.job_file = scratch_ / "job/job.json";
    out.program = "/opt/warpsmith/bin/warpsmith-measure";
    out.log = scratch_ / "job" / std::to_string(n) / "log.txt";
    out.token = token;
    out.resources.time_s = 90;
    return out;
  }
  std::vector<ShardStart> shards(std::uint32_t count) const {
    std::vector<ShardStart> out;
    for (std::uint32_t n = 0; n < count; ++n) out.push_back(shard(n));
    return out;
  }
  void last_words(std::uint32_t n, Json words, const std::string& token = "ws-run-0-1") const {
    append_last_word(ends_folder(scratch_ / "job/job.json"), "n1", {token, n, words});
  }

  // Polls until `done` holds, 10 s at most.
  template <class Done>
  void poll_until(run::Executor& executor, const Done& done) {
    const auto until = Clock::now() + 10s;
    while (!done() && Clock::now() < until)
      for (const ShardEvent& event : executor.poll(50ms)) {
        if (event.kind == ShardEvent::Kind::kStarted) started_.push_back(event);
        if (event.kind == ShardEvent::Kind::kEnded) ended_.push_back(event);
      }
    EXPECT_TRUE(done()) << executor.view().trouble;
  }
  void poll_until_ended(run::Executor& executor, std::size_t count) {
    poll_until(executor, [&] { return ended_.size() >= count; });
  }
  ShardEvent end_in_state(SlurmState state, const std::function<void(SlurmTask&)>& change = {}) {
    SlurmExecutor executor = make();
    executor.submit({shard(0)});
    poll_until(executor, [&] { return slurm_->submissions() == 1; });
    slurm_->set_state(0, state);
    if (change) slurm_->set(0, change);
    poll_until_ended(executor, 1);
    return ended_.empty() ? ShardEvent{} : ended_.front();
  }

  Scratch scratch_;
  std::shared_ptr<FakeSlurm> slurm_ = std::make_shared<FakeSlurm>();
  SlurmOptions options_;
  std::vector<ShardEvent> started_, ended_;
};

TEST_F(Slurm, ARangeIsOneArrayNamedByItsToken) {
  SlurmExecutor executor = make();
  executor.submit(shards(10));
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  const SlurmJob job = slurm_->submitted.at(0);
  EXPECT_EQ(job.name, "ws-run-0-1");
  EXPECT_EQ(job.array, "0-9");
  EXPECT_EQ(job.partition, "cpu");
  EXPECT_EQ(job.minutes, 3u);  // 90 s, and one for our own limit to strike first
  EXPECT_EQ(job.folder, scratch_ / "");
  EXPECT_THAT(job.script, HasSubstr("/opt/warpsmith/bin/warpsmith-shard --token ws-run-0-1 --base 0"));
}

TEST_F(Slurm, APlaceWhoseQueueIsFullDoesNotHoldTheOthers) {
  options_.site.gpus["H20"].partition = "h20";
  options_.site.gpus["H20"].gres = "gpu:h20";
  ShardStart scarce = shard(0, "ws-run-0-1"), other = shard(1, "ws-run-0-2");
  scarce.resources.gpus = 1;
  scarce.resources.gpu_type = "H20";
  int calls = 0;
  slurm_->on_submit = [&] {
    if (++calls == 1) throw SlurmError(SlurmTrouble::kLimit, 2050, "h20 is full");
  };
  SlurmExecutor executor = make();
  executor.submit({scarce, other});
  poll_until(executor, [&] { return slurm_->submissions() == 2; });
  EXPECT_EQ(slurm_->submitted.at(0).partition, "cpu");
  EXPECT_EQ(slurm_->submitted.at(1).partition, "h20");
}

TEST_F(Slurm, NeverAsksForMoreTimeThanThePlaceAllows) {
  options_.site.cpu.max_time_s = 120;
  SlurmExecutor executor = make();
  executor.submit({shard(0)});
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  EXPECT_EQ(slurm_->submitted.at(0).minutes, 2u);
}

TEST_F(Slurm, ALostSubmissionThatIsCancelledMeanwhileIsCancelledWhenItIsFound) {
  slurm_->lose_answer = true;
  SlurmExecutor executor = make();
  executor.submit(shards(3));
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  executor.cancel({{0, 0}, {0, 1}, {0, 2}});
  poll_until_ended(executor, 3);
  for (const ShardEvent& event : ended_) EXPECT_EQ(event.cause, EndCause::kCancelled);
  EXPECT_EQ(slurm_->submissions(), 1u);
}

TEST_F(Slurm, LastWordsInAFileAreTheEnd) {
  SlurmExecutor executor = make();
  executor.submit(shards(2));
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  last_words(1, {{"cause", "out_of_memory"},
                 {"signal", 9},
                 {"wall_s", 2.5},
                 {"cpu_s", 1.5},
                 {"memory", 4096},
                 {"host", "node-7"},
                 {"detail", "took more than 4.0 KiB of memory"}});
  poll_until_ended(executor, 1);
  ASSERT_THAT(ended_, SizeIs(1));
  EXPECT_EQ(ended_[0].key, (ShardKey{0, 1}));
  EXPECT_EQ(ended_[0].cause, EndCause::kOutOfMemory);
  EXPECT_EQ(ended_[0].signal, 9);
  EXPECT_EQ(ended_[0].wall_s, 2.5);
  EXPECT_EQ(ended_[0].peak_memory_bytes, 4096u);
  EXPECT_THAT(ended_[0].where, HasSubstr("_1@node-7"));
  EXPECT_EQ(executor.poll(300ms).size(), 0u);  // once
}

TEST_F(Slurm, ATaskThatIsQueuedAgainAfterItsEndIsCancelled) {
  SlurmExecutor executor = make();
  executor.submit(shards(2));
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  last_words(1, {{"cause", "finished"}});
  poll_until_ended(executor, 1);  // its task is pending still, as after a requeue
  poll_until(executor, [&] {
    const std::lock_guard lock(slurm_->mutex);
    return !slurm_->cancelled.empty();
  });
  EXPECT_EQ(slurm_->cancelled.at(0), "100_[1]");
}

TEST_F(Slurm, WhenAllHaveEndedTheQueueIsLookedAtOnceMore) {
  SlurmExecutor executor = make();
  executor.submit(shards(2));
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  last_words(0, {{"cause", "finished"}});
  last_words(1, {{"cause", "finished"}});
  poll_until_ended(executor, 2);
  executor.shut_down();
  EXPECT_THAT(slurm_->tasks, IsEmpty());
}

TEST_F(Slurm, WordsOfAnEarlierAttemptAreNotTakenForThisOne) {
  SlurmExecutor executor = make();
  executor.submit({shard(0, "ws-run-0-2")});
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  last_words(0, {{"cause", "failed"}}, "ws-run-0-1");
  EXPECT_EQ(executor.poll(500ms).size(), 0u);
}

TEST_F(Slurm, MoreShardsThanAnArrayHoldsAreSeveral) {
  slurm_->facts.max_array_size = 4;
  SlurmExecutor executor = make();
  executor.submit(shards(10));
  poll_until(executor, [&] { return slurm_->submissions() == 3; });
  EXPECT_EQ(slurm_->submitted[0].array, "0-3");
  EXPECT_EQ(slurm_->submitted[1].array, "0-3");
  EXPECT_EQ(slurm_->submitted[2].array, "0-1");
  EXPECT_EQ(slurm_->submitted[1].name, "ws-run-0-1.4");
  EXPECT_THAT(slurm_->submitted[2].script, HasSubstr("--base 8 "));
  slurm_->set_state(1, SlurmState::kRunning);  // the second of each array
  poll_until(executor, [&] { return started_.size() == 3; });
  std::set<std::uint32_t> numbers;
  for (const ShardEvent& event : started_) numbers.insert(event.key.shard);
  EXPECT_THAT(numbers, ElementsAre(1, 5, 9));
}

TEST_F(Slurm, WhatDoesNotFitIntoTheQueueWaits) {
  int room = 5;
  slurm_->on_submit = [&] {
    if (room-- <= 0) throw SlurmError(SlurmTrouble::kLimit, 11, "MaxJobCount");
  };
  // Every submission takes a place here, however large it is: the executor halves, and then waits.
  SlurmExecutor executor = make();
  for (std::uint32_t n = 0; n < 7; ++n) executor.submit({shard(n, "ws-run-0-" + std::to_string(n + 1))});
  poll_until(executor, [&] { return slurm_->submissions() == 5 && !executor.view().trouble.empty(); });
  EXPECT_THAT(executor.view().trouble, HasSubstr("queue is full"));
  EXPECT_THAT(ended_, IsEmpty());
  room = 100;
  poll_until(executor, [&] { return slurm_->submissions() == 7; });
  EXPECT_THAT(ended_, IsEmpty());
}

TEST_F(Slurm, ALostAnswerIsLookedUpAndNotSubmittedTwice) {
  slurm_->lose_answer = true;
  SlurmExecutor executor = make();
  executor.submit(shards(3));
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  slurm_->set_state(2, SlurmState::kRunning);
  poll_until(executor, [&] { return started_.size() == 1; });
  EXPECT_EQ(started_.at(0).key.shard, 2u);
  (void)executor.poll(1500ms);
  EXPECT_EQ(slurm_->submissions(), 1u);
}

TEST_F(Slurm, ALostRequestIsSubmittedAgain) {
  bool lost = false;
  slurm_->on_submit = [&] {
    if (!std::exchange(lost, true)) throw SlurmError(SlurmTrouble::kUnsure, 5004, "no answer");
  };
  SlurmExecutor executor = make();
  executor.submit(shards(3));
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  EXPECT_EQ(slurm_->submitted.at(0).array, "0-2");
}

TEST_F(Slurm, WhatSlurmRefusesIsAUserError) {
  slurm_->on_submit = [] { throw SlurmError(SlurmTrouble::kRefused, 2000, "Invalid partition name"); };
  SlurmExecutor executor = make();
  executor.submit(shards(2));
  poll_until_ended(executor, 2);
  EXPECT_EQ(ended_.at(0).cause, EndCause::kUserError);
  EXPECT_THAT(ended_.at(0).detail, HasSubstr("Invalid partition"));
}

TEST_F(Slurm, AGpuTypeThatTheSiteLacksIsAUserError) {
  SlurmExecutor executor = make();
  ShardStart start = shard(0);
  start.resources.gpus = 1;
  start.resources.gpu_type = "B300";
  executor.submit({start});
  poll_until_ended(executor, 1);
  EXPECT_EQ(ended_.at(0).cause, EndCause::kUserError);
  EXPECT_THAT(ended_.at(0).detail, HasSubstr("B300"));
}

TEST_F(Slurm, TwinsOfSeveralTypesTakeTurnsWhereNoTypeIsWanted) {
  for (const char* type : {"H100", "L40"}) {
    workflow::SitePlace place;
    place.partition = place.gres = type;
    place.twin = true;
    options_.site.gpus[type] = place;
  }
  SlurmExecutor executor = make();
  std::vector<ShardStart> wanted = shards(4);
  for (ShardStart& one : wanted) one.resources.gpus = 1;
  executor.submit(wanted);
  poll_until(executor, [&] { return slurm_->submissions() == 2; });
  std::set<std::string> arrays;
  for (const SlurmJob& job : slurm_->submitted) {
    EXPECT_EQ(job.gpus, job.partition + ":1");
    arrays.insert(job.array);
  }
  EXPECT_THAT(arrays, ElementsAre("0,2", "1,3"));
}

TEST_F(Slurm, JobsOfOneShardDoNotAllGoToTheSameTwins) {
  for (const char* type : {"H100", "H20", "L40", "RTX3090"}) {
    workflow::SitePlace place;
    place.partition = place.gres = type;
    place.twin = true;
    options_.site.gpus[type] = place;
  }
  SlurmExecutor executor = make();
  constexpr std::size_t kRounds = 16;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    std::vector<ShardStart> wanted = shards(1);
    wanted[0].key.job = 4 * round + 2;  // each round has four jobs
    wanted[0].token = "ws-run-" + std::to_string(round);
    wanted[0].resources.gpus = 1;
    executor.submit(wanted);
  }
  poll_until(executor, [&] { return slurm_->submissions() == kRounds; });
  std::set<std::string> partitions;
  for (const SlurmJob& job : slurm_->submitted) partitions.insert(job.partition);
  EXPECT_EQ(partitions.size(), 4u);
}

TEST_F(Slurm, SlurmAwayBlocksNothingAndLosesNothing) {
  std::atomic<bool> away = true;
  slurm_->on_submit = [&] {
    std::this_thread::sleep_for(400ms);
    if (away) throw SlurmError(SlurmTrouble::kAway, 1800, "slurmctld is down");
  };
  SlurmExecutor executor = make();
  executor.submit(shards(2));
  const auto begin = Clock::now();
  (void)executor.poll(50ms);
  EXPECT_LT(Clock::now() - begin, 300ms);
  poll_until(executor, [&] { return !executor.view().trouble.empty(); });
  EXPECT_THAT(executor.view().trouble, HasSubstr("slurmctld is down"));
  away = false;
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  EXPECT_THAT(ended_, IsEmpty());
}

TEST_F(Slurm, StatusRequestsComeFromABucket) {
  options_.site.requests_per_minute = 60;
  options_.site.request_burst = 2;
  SlurmExecutor executor = make();
  executor.submit(shards(1));
  const auto until = Clock::now() + 5s;
  while (Clock::now() < until) (void)executor.poll(20ms);
  EXPECT_GE(slurm_->status_requests, 1);
  EXPECT_LE(slurm_->status_requests, 7);  // two at once, then one a second
}

struct StateCase {
  SlurmState state;
  EndCause cause;
};
class SlurmStates : public Slurm, public testing::WithParamInterface<StateCase> {};
TEST_P(SlurmStates, DecidesWhereAShardLeftNoWord) {
  const ShardEvent end = end_in_state(GetParam().state);
  EXPECT_EQ(end.cause, GetParam().cause);
  EXPECT_THAT(end.detail, HasSubstr(std::string(to_string(GetParam().state))));
}
INSTANTIATE_TEST_SUITE_P(All, SlurmStates,
                         testing::Values(StateCase{SlurmState::kCompleted, EndCause::kFinished},
                                         StateCase{SlurmState::kFailed, EndCause::kFailed},
                                         StateCase{SlurmState::kTimeout, EndCause::kTimeout},
                                         StateCase{SlurmState::kDeadline, EndCause::kTimeout},
                                         StateCase{SlurmState::kNodeFail, EndCause::kNodeFailure},
                                         StateCase{SlurmState::kBootFail, EndCause::kNodeFailure},
                                         StateCase{SlurmState::kPreempted, EndCause::kPreempted},
                                         StateCase{SlurmState::kOutOfMemory, EndCause::kOutOfMemory},
                                         StateCase{SlurmState::kCancelled, EndCause::kStopped}),
                         [](const auto& one) { return std::string(to_string(one.param.state)); });

TEST_F(Slurm, ASignalIsACrashAndExit2AUserError) {
  EXPECT_EQ(end_in_state(SlurmState::kFailed, [](SlurmTask& t) { t.signal = 11; }).cause, EndCause::kCrash);
  ended_.clear();
  slurm_ = std::make_shared<FakeSlurm>();
  EXPECT_EQ(end_in_state(SlurmState::kFailed, [](SlurmTask& t) { t.exit_code = 2; }).cause,
            EndCause::kUserError);
  ended_.clear();
  slurm_ = std::make_shared<FakeSlurm>();
  EXPECT_EQ(end_in_state(SlurmState::kFailed, [](SlurmTask& t) { t.signal = 53; }).cause,
            EndCause::kLaunchFailure);
}

TEST_F(Slurm, AShardThatCouldNotLeaveAWordIsDecidedByItsRecords) {
  const ShardEvent end =
      end_in_state(SlurmState::kFailed, [](SlurmTask& t) { t.exit_code = kExitEnvironment; });
  EXPECT_EQ(end.cause, EndCause::kUnknown);
}

TEST_F(Slurm, ANodeThatFailedIsLeftOutOfTheNextTry) {
  SlurmExecutor executor = make();
  executor.submit({shard(0)});
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  slurm_->set_state(0, SlurmState::kNodeFail);
  poll_until_ended(executor, 1);
  executor.submit({shard(0, "ws-run-0-2")});
  poll_until(executor, [&] { return slurm_->submissions() == 2; });
  EXPECT_EQ(slurm_->submitted.at(1).exclude, "node-1");
}

TEST_F(Slurm, ANodeThatFailedIsUsedWhereThereIsNoOther) {
  SlurmExecutor executor = make();
  executor.submit({shard(0)});
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  slurm_->set_state(0, SlurmState::kNodeFail);
  poll_until_ended(executor, 1);
  bool refused = false;
  slurm_->on_submit = [&] {
    if (!std::exchange(refused, true)) throw SlurmError(SlurmTrouble::kRefused, 2014, "not available");
  };
  executor.submit({shard(0, "ws-run-0-2")});
  poll_until(executor, [&] { return slurm_->submissions() == 2; });
  EXPECT_EQ(slurm_->submitted.at(1).exclude, "");
  EXPECT_THAT(ended_, SizeIs(1));
}

TEST_F(Slurm, AgedOutOfTheQueueEndsAsAccountingSays) {
  slurm_->facts.accounting = true;
  slurm_->accounting_lags = 1;
  SlurmExecutor executor = make();
  executor.submit(shards(2));
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  {
    const std::lock_guard lock(slurm_->mutex);
    slurm_->accounted = std::exchange(slurm_->tasks, {});
    slurm_->accounted[0].state = SlurmState::kOutOfMemory;
    slurm_->accounted[0].nodes = "node-7";
    slurm_->accounted[1].state = SlurmState::kNodeFail;
    for (SlurmTask& task : slurm_->accounted) task.started = 1000, task.ended = 1060;
  }
  poll_until_ended(executor, 2);
  std::sort(ended_.begin(), ended_.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  EXPECT_EQ(ended_.at(0).cause, EndCause::kOutOfMemory);
  EXPECT_THAT(ended_.at(0).where, HasSubstr("node-7"));
  EXPECT_EQ(ended_.at(0).wall_s, 60);
  EXPECT_EQ(ended_.at(1).cause, EndCause::kNodeFailure);
}

TEST_F(Slurm, AgedOutBeforeItWasAttachedEndsAsAccountingSays) {
  slurm_->facts.accounting = true;
  slurm_->facts.max_array_size = 4;  // shard 5 is task 1 of the array "<token>.4"
  SlurmTask task;
  task.job = 18;
  task.array = 17;
  task.tasks = {1};
  task.name = shard(5).token + ".4";
  task.state = SlurmState::kTimeout;
  slurm_->accounted = {task};
  SlurmExecutor executor = make();
  executor.attach({shard(5)});
  poll_until_ended(executor, 1);
  EXPECT_EQ(ended_.at(0).key.shard, 5);
  EXPECT_EQ(ended_.at(0).cause, EndCause::kTimeout);
  EXPECT_THAT(ended_.at(0).where, HasSubstr("17_1"));
}

TEST_F(Slurm, WhatAccountingDoesNotKnowEitherIsUnknown) {
  slurm_->facts.accounting = true;
  SlurmExecutor executor = make();
  executor.submit({shard(0)});
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  slurm_->forget_jobs();
  poll_until_ended(executor, 1);
  EXPECT_EQ(ended_.at(0).cause, EndCause::kUnknown);
  EXPECT_EQ(slurm_->account_requests, 3);
}

TEST_F(Slurm, AFullDiskThatHasRoomAgainIsNoReasonToStop) {
  SlurmExecutor executor = make();
  executor.submit({shard(0)});
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  last_words(0, {{"cause", "disk_full"}, {"exit_code", 1}});
  poll_until_ended(executor, 1);
  EXPECT_EQ(ended_.at(0).cause, EndCause::kUnknown);
  EXPECT_THAT(ended_.at(0).detail, HasSubstr("room again"));
}

TEST_F(Slurm, AWordThatComesBeforeTheAnswerToTheSubmissionCounts) {
  SlurmExecutor executor = make();
  executor.submit({shard(0)});
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  // The second submission of the same job: its shard has ended before slurmctld has answered.
  slurm_->on_submit = [&] {
    last_words(1, {{"cause", "finished"}, {"wall_s", 1.5}}, "ws-run-0-2");
    std::this_thread::sleep_for(400ms);
  };
  executor.submit({shard(1, "ws-run-0-2")});
  poll_until_ended(executor, 1);
  EXPECT_EQ(ended_.at(0).cause, EndCause::kFinished);
  EXPECT_EQ(ended_.at(0).wall_s, 1.5);
}

TEST_F(Slurm, AgedOutOfTheQueueIsUnknown) {
  SlurmExecutor executor = make();
  executor.submit({shard(0)});
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  slurm_->forget_jobs();
  poll_until_ended(executor, 1);
  EXPECT_EQ(ended_.at(0).cause, EndCause::kUnknown);
}

TEST_F(Slurm, ARequeuedTaskStartsAgainAndDoesNotEnd) {
  SlurmExecutor executor = make();
  executor.submit({shard(0)});
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  slurm_->set_state(0, SlurmState::kRunning);
  poll_until(executor, [&] { return started_.size() == 1; });
  slurm_->set(0, [](SlurmTask& t) {
    t.state = SlurmState::kPending;
    t.restarts = 1;
  });
  (void)executor.poll(1s);
  slurm_->set_state(0, SlurmState::kRunning);
  poll_until(executor, [&] { return started_.size() == 2; });
  EXPECT_THAT(started_.at(1).detail, HasSubstr("again"));
  EXPECT_THAT(ended_, IsEmpty());
}

TEST_F(Slurm, WhatCanNeverStartIsCancelledAndSaysWhy) {
  const ShardEvent end =
      end_in_state(SlurmState::kPending, [](SlurmTask& t) { t.reason = "BadConstraints"; });
  EXPECT_EQ(end.cause, EndCause::kUserError);
  EXPECT_THAT(end.detail, HasSubstr("BadConstraints"));
  EXPECT_THAT(slurm_->cancelled, SizeIs(1));
}

TEST_F(Slurm, AHeldLaunchFailureThatWeCancelIsALaunchFailure) {
  options_.file_grace_s = 2;
  SlurmExecutor executor = make();
  executor.submit({shard(0)});
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  SlurmTask task;
  slurm_->set(0, [&](SlurmTask& t) {
    t.reason = "launch failed requeued held";
    task = t;
  });
  poll_until(executor, [&] {
    const std::lock_guard lock(slurm_->mutex);
    return !slurm_->cancelled.empty();
  });
  {
    const std::lock_guard lock(slurm_->mutex);
    task.state = SlurmState::kCancelled;  // as slurmctld shows it then
    slurm_->tasks.push_back(task);
  }
  poll_until_ended(executor, 1);
  EXPECT_EQ(ended_.at(0).cause, EndCause::kLaunchFailure) << ended_.at(0).detail;
}

TEST_F(Slurm, CancelEndsPendingAndRunningOnes) {
  SlurmExecutor executor = make();
  executor.submit(shards(3));
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  slurm_->set_state(1, SlurmState::kRunning);
  poll_until(executor, [&] { return started_.size() == 1; });
  executor.cancel({{0, 0}, {0, 1}});
  poll_until_ended(executor, 2);
  EXPECT_THAT(slurm_->cancelled, ElementsAre("100_[0-1]"));
  for (const ShardEvent& event : ended_) EXPECT_EQ(event.cause, EndCause::kCancelled) << event.detail;
}

TEST_F(Slurm, ShutDownLeavesNothingInTheQueue) {
  SlurmExecutor executor = make();
  executor.submit(shards(3));
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  slurm_->set_state(1, SlurmState::kRunning);
  (void)executor.poll(100ms);
  executor.shut_down();
  for (const SlurmTask& task : slurm_->tasks) EXPECT_TRUE(has_ended(task.state));
}

TEST_F(Slurm, CancelledWhileItsSubmissionIsUnderWay) {
  std::promise<void> asked, go_on;
  slurm_->on_submit = [&] {
    asked.set_value();
    go_on.get_future().wait();
  };
  SlurmExecutor executor = make();
  executor.submit(shards(2));
  (void)executor.poll(1ms);
  asked.get_future().wait();
  executor.cancel({{0, 0}, {0, 1}});
  go_on.set_value();
  poll_until_ended(executor, 2);
  EXPECT_THAT(slurm_->cancelled, ElementsAre("100_[0-1]"));
  for (const ShardEvent& event : ended_) EXPECT_EQ(event.cause, EndCause::kCancelled) << event.detail;
}

TEST_F(Slurm, ShutDownWaitsForASubmissionUnderWay) {
  std::promise<void> asked;
  slurm_->on_submit = [&] {
    asked.set_value();
    std::this_thread::sleep_for(200ms);
  };
  SlurmExecutor executor = make();
  executor.submit(shards(1));
  (void)executor.poll(1ms);
  asked.get_future().wait();
  executor.shut_down();
  EXPECT_EQ(slurm_->submissions(), 1u);
  for (const SlurmTask& task : slurm_->tasks) EXPECT_TRUE(has_ended(task.state));
}

TEST_F(Slurm, CancelledBetweenAttachAndTheFirstLook) {
  slurm_->tasks.push_back(task_of_shard_0(100, SlurmState::kPending));
  SlurmExecutor executor = make();
  executor.attach(shards(1));
  executor.cancel({{0, 0}});
  poll_until_ended(executor, 1);
  EXPECT_THAT(slurm_->cancelled, ElementsAre("100_[0]"));
  EXPECT_EQ(ended_.at(0).cause, EndCause::kCancelled);
}

TEST_F(Slurm, AccountingTellsOfTheOneThatRanAndNotOfItsCancelledDouble) {
  slurm_->facts.accounting = true;
  slurm_->accounted = {task_of_shard_0(200, SlurmState::kCancelled),
                       task_of_shard_0(100, SlurmState::kOutOfMemory)};
  slurm_->accounted[0].submitted = 20;
  slurm_->accounted[1].submitted = 10;
  SlurmExecutor executor = make();
  executor.attach(shards(1));
  poll_until_ended(executor, 1);
  EXPECT_EQ(ended_.at(0).cause, EndCause::kOutOfMemory);
}

TEST_F(Slurm, AttachFindsItsShardsByTheirTokens) {
  {
    SlurmExecutor before = make();
    before.submit(shards(3));
    poll_until(before, [&] { return slurm_->submissions() == 1; });
    before.detach();
  }
  slurm_->set_state(0, SlurmState::kRunning);
  slurm_->set_state(1, SlurmState::kTimeout);
  last_words(2, {{"cause", "finished"}});
  SlurmExecutor executor = make();
  executor.attach(shards(3));
  poll_until_ended(executor, 2);
  poll_until(executor, [&] { return started_.size() == 1; });
  EXPECT_EQ(started_.at(0).key.shard, 0u);
  EXPECT_EQ(slurm_->submissions(), 1u);
  std::map<std::uint32_t, EndCause> causes;
  for (const ShardEvent& event : ended_) causes[event.key.shard] = event.cause;
  EXPECT_EQ(causes[1], EndCause::kTimeout);
  EXPECT_EQ(causes[2], EndCause::kFinished);
}

TEST_F(Slurm, WhatWasCancelledBeforeAttachIsNotStopped) {
  SlurmTask task = task_of_shard_0(100, SlurmState::kCancelled);
  task.ended = std::time(nullptr) - 5;
  slurm_->tasks.push_back(task);
  task.tasks = {1};
  task.job = 101;
  task.ended = std::time(nullptr) + 5;
  slurm_->tasks.push_back(task);
  SlurmExecutor executor = make();
  executor.attach(shards(2));
  poll_until_ended(executor, 2);
  std::sort(ended_.begin(), ended_.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  EXPECT_EQ(ended_.at(0).cause, EndCause::kUnknown)
      << "by the controller before, which could not write it down";
  EXPECT_EQ(ended_.at(1).cause, EndCause::kStopped) << "by somebody, now";
}

TEST_F(Slurm, AttachToWhatNeverArrivedEndsAsUnknown) {
  SlurmExecutor executor = make();
  executor.attach(shards(1));
  poll_until_ended(executor, 1);
  EXPECT_EQ(ended_.at(0).cause, EndCause::kUnknown);
}

TEST_F(Slurm, LeftoversOfTheRunAreCancelled) {
  {
    SlurmExecutor before = make();
    before.submit({shard(5, "ws-run-9-9")});
    poll_until(before, [&] { return slurm_->submissions() == 1; });
  }
  SlurmExecutor executor = make();
  executor.submit(shards(1));
  poll_until(executor, [&] {
    const std::lock_guard lock(slurm_->mutex);
    return !slurm_->cancelled.empty();
  });
  EXPECT_THAT(slurm_->cancelled, ElementsAre("100"));
}

TEST(SlurmIndices, GoBothWays) {
  EXPECT_EQ(format_indices({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_THAT(parse_indices("0-2,5,7-8"), ElementsAre(0, 1, 2, 5, 7, 8));
  EXPECT_THAT(parse_indices("[3,6-8%4]"), ElementsAre(3, 6, 7, 8));
  EXPECT_THAT(parse_indices("0-8:4"), ElementsAre(0, 4, 8));
  EXPECT_THROW((void)parse_indices("1-x"), Error);
  EXPECT_THROW((void)parse_indices("5-2"), Error);
}

TEST(SlurmScript, QuotesWhatAShellWouldRead) {
  EXPECT_EQ(shell_word("plain-1.0/x"), "plain-1.0/x");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a b$(c)'d"), "'a b$(c)'\\''d'");
}

TEST(SlurmScript, HasWhatTheSiteSays) {
  ShardStart start;
  start.job_file = "/runs/r/job.json";
  start.program = "/bin/warpsmith-train";
  start.arguments = {"it's"};
  start.token = "ws-1-2-3";
  start.resources.gpus = 1;
  workflow::SitePlace place;
  place.modules = {"cuda/13"};
  place.setup = {"ulimit -c 0"};
  place.container = {"apptainer", "exec", "--nv", "$HOME/w.sif"};
  place.scratch = "/scratch/$USER";
  place.names = {"NVIDIA L40"};
  const std::string script = batch_script(start, 7, place, "/opt/bin");
  EXPECT_THAT(script, HasSubstr("#!/bin/bash -l\nmodule load cuda/13\nulimit -c 0\n"));
  EXPECT_THAT(script, HasSubstr("export TMPDIR=\"/scratch/$USER\""));
  EXPECT_THAT(script,
              HasSubstr("exec \"apptainer\" \"exec\" \"--nv\" \"$HOME/w.sif\" /opt/bin/warpsmith-shard"));
  EXPECT_THAT(script, HasSubstr("--base 7"));
  EXPECT_THAT(script, HasSubstr("--gpu-name 'NVIDIA L40'"));
  EXPECT_THAT(script, HasSubstr("-- /bin/warpsmith-train 'it'\\''s' /runs/r/job.json\n"));
}

TEST(SlurmScript, ShardsInheritNothingOfTheControllersJob) {
  workflow::SitePlace place;
  place.environment = {{"A", "site"}};
  const auto environment = batch_environment({{"A", "ours"},
                                              {"HOME", "/home/x"},
                                              {"SLURM_JOB_ID", "7"},
                                              {"SLURM_CONF", "/etc/slurm.conf"},
                                              {"SBATCH_PARTITION", "p"},
                                              {"SRUN_DEBUG", "3"},
                                              {"CUDA_VISIBLE_DEVICES", "0"}},
                                             place);
  EXPECT_THAT(environment,
              ElementsAre("A=site", "HOME=/home/x", "PATH=/usr/bin:/bin", "SLURM_CONF=/etc/slurm.conf"));
}

TEST(TokenBucket, AllowsABurstAndThenARate) {
  const Clock::time_point start{};
  TokenBucket bucket(6, 20, start);
  int taken = 0;
  for (int s = 0; s < 600; ++s)
    while (bucket.take(start + std::chrono::seconds(s))) ++taken;
  EXPECT_GE(taken, 78);
  EXPECT_LE(taken, 80);  // 20 at once, 6 a minute for ten minutes
  EXPECT_GT(bucket.next(start + 599s), start + 599s);
}

}  // namespace
}  // namespace warpsmith::executor
