// The Slurm executor over a cluster in memory: what it asks of Slurm, and what it makes of every answer. The
// same with real daemons: tests/slurm.
#include "warpsmith/executor/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

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
  // Of another job, under its token ws-run-JOB-1. A new token for shards of job 0 that are in the queue would
  // have their tasks cancelled as strays.
  std::vector<ShardStart> shards_of_job(std::uint32_t job, std::uint32_t begin, std::uint32_t end) const {
    std::vector<ShardStart> out;
    for (std::uint32_t n = begin; n < end; ++n) {
      out.push_back(shard(n, "ws-run-" + std::to_string(job) + "-1"));
      out.back().key.job = job;
    }
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

TEST_F(Slurm, NoPathThatSlurmWouldExpandIsItsOutput) {
  const std::filesystem::path root = options_.run;
  for (const char* name : {"100%j", "r%%b", "r%5Cx", "r\\b", "%", "a%A_%a", "back\\\\slash", "%\\", "%10j"}) {
    slurm_->submitted.clear();
    options_.run = root / name;
    SlurmExecutor executor = make();
    ShardStart start = shard(0);
    start.job_file = options_.run / "stages/work/1/job.json";
    executor.submit({start});
    poll_until(executor, [&] { return slurm_->submissions() == 1; });
    EXPECT_EQ(slurm_->submitted.at(0).folder, options_.run);
    EXPECT_EQ(slurm_->submitted.at(0).output, "stages/work/1/slurm.log");
  }
}

TEST_F(Slurm, AJobGetsOurUmask) {
  for (const auto& [mask, variable] :
       {std::pair(0077, "SLURM_UMASK=0077"), std::pair(0002, "SLURM_UMASK=0002")}) {
    const mode_t before = ::umask(mask);
    const SlurmJob job = job_at(options_.site.cpu, 0);
    ::umask(before);
    EXPECT_THAT(job.environment, testing::Contains(variable));
  }
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

// ---- what Slurm refuses ----

TEST_F(Slurm, ArraysHaveAtMostTheTasksThatSlurmSays) {
  slurm_->facts.max_array_tasks = 3;
  SlurmExecutor executor = make();
  executor.submit(shards(8));
  poll_until(executor, [&] { return slurm_->submissions() == 3; });
  std::vector<std::string> arrays;
  for (const SlurmJob& job : slurm_->submitted) {
    arrays.push_back(job.array);
    EXPECT_EQ(job.name, "ws-run-0-1");
  }
  EXPECT_THAT(arrays, ElementsAre("0-2", "3-5", "6-7"));
  slurm_->set_state(4, SlurmState::kRunning);
  poll_until(executor, [&] { return !started_.empty(); });
  EXPECT_EQ(started_.at(0).key.shard, 4u);
}

TEST_F(Slurm, AnArrayThatIsRefusedIsHalvedAndTheSizeRemembered) {
  int refusals = 0;
  slurm_->on_job = [&](const SlurmJob& job) {
    if (parse_indices(job.array).size() <= 3) return;
    ++refusals;
    throw SlurmError(SlurmTrouble::kArray, 2081, "Invalid job array specification");
  };
  SlurmExecutor executor = make();
  executor.submit(shards(16));
  executor.submit(shards_of_job(1, 0, 5));
  const auto tasks = [&] {
    const std::lock_guard lock(slurm_->mutex);
    return slurm_->tasks.size();
  };
  poll_until(executor, [&] { return tasks() == 21; });
  EXPECT_EQ(refusals, 3);  // 16, 8, 4
  EXPECT_THAT(ended_, IsEmpty());
}

// An administrator lowers Slurm's limits while a run goes on. Arrays are refused as slurmctld does it.
class LoweredLimits : public Slurm {
 protected:
  // `told`: the configuration that we can read has the new limits too.
  void lower(std::uint32_t array_size, std::uint32_t array_tasks, bool told) {
    const std::lock_guard lock(slurm_->mutex);
    size_ = array_size;
    tasks_ = array_tasks;
    if (!told) return;
    slurm_->facts.max_array_size = array_size;
    slurm_->facts.max_array_tasks = array_tasks;
  }
  void refuse_large_arrays() {
    slurm_->on_job = [this](const SlurmJob& job) {
      const std::vector<std::uint32_t> indices = parse_indices(job.array);
      const std::lock_guard lock(slurm_->mutex);
      if (indices.back() < size_ && (tasks_ == 0 || indices.size() <= tasks_)) return;
      ++refusals_;
      throw SlurmError(SlurmTrouble::kArray, 2081, "Invalid job array specification");
    };
  }
  std::vector<std::string> arrays() {  // name[indices]
    const std::lock_guard lock(slurm_->mutex);
    std::vector<std::string> out;
    for (const SlurmJob& job : slurm_->submitted) out.push_back(job.name + "[" + job.array + "]");
    return out;
  }
  std::size_t tasks() {
    const std::lock_guard lock(slurm_->mutex);
    return slurm_->tasks.size();
  }
  std::uint32_t size_ = 1000, tasks_ = 0;
  int refusals_ = 0;
};

TEST_F(LoweredLimits, OfIndicesAreReadAnewAndTheRunGoesOn) {
  refuse_large_arrays();
  SlurmExecutor executor = make();
  executor.submit(shards(10));
  poll_until(executor, [&] { return tasks() == 10; });
  lower(4, 0, true);
  executor.submit(shards_of_job(1, 5, 14));
  executor.submit(shards_of_job(2, 0, 6));
  poll_until(executor, [&] { return tasks() == 25; });
  EXPECT_THAT(arrays(), ElementsAre("ws-run-0-1[0-9]", "ws-run-1-1.4[1-3]", "ws-run-1-1.8[0-3]",
                                    "ws-run-1-1.12[0-1]", "ws-run-2-1[0-3]", "ws-run-2-1.4[0-1]"));
  EXPECT_EQ(refusals_, 1);
  EXPECT_THAT(ended_, IsEmpty());
}

TEST_F(LoweredLimits, OfIndicesAreFoundByHalvingWhereTheyCannotBeRead) {
  refuse_large_arrays();
  SlurmExecutor executor = make();
  lower(4, 0, false);
  executor.submit({shard(700)});
  executor.submit(shards_of_job(1, 0, 10));
  poll_until(executor, [&] { return tasks() == 11; });
  EXPECT_THAT(ended_, IsEmpty());
  EXPECT_EQ(executor.view().trouble, "");
  std::set<std::uint32_t> started;
  for (std::uint32_t index = 0; index < 4; ++index) slurm_->set_state(index, SlurmState::kRunning);
  poll_until(executor, [&] { return started_.size() == 11; });
  for (const ShardEvent& event : started_) started.insert(event.key.shard);
  EXPECT_THAT(started, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 700));
}

TEST_F(LoweredLimits, OfTasksAreReadAnew) {
  refuse_large_arrays();
  SlurmExecutor executor = make();
  executor.submit(shards(10));
  poll_until(executor, [&] { return tasks() == 10; });
  lower(1000, 3, true);
  executor.submit(shards_of_job(1, 0, 8));
  poll_until(executor, [&] { return tasks() == 18; });
  EXPECT_THAT(arrays(),
              ElementsAre("ws-run-0-1[0-9]", "ws-run-1-1[0-2]", "ws-run-1-1[3-5]", "ws-run-1-1[6-7]"));
  EXPECT_EQ(refusals_, 1);
}

TEST_F(LoweredLimits, DownToOneTaskOfIndex0) {
  refuse_large_arrays();
  SlurmExecutor executor = make();
  lower(1, 0, false);
  executor.submit(shards(5));
  poll_until(executor, [&] { return tasks() == 5; });
  EXPECT_THAT(arrays(), ElementsAre("ws-run-0-1[0]", "ws-run-0-1.1[0]", "ws-run-0-1.2[0]", "ws-run-0-1.3[0]",
                                    "ws-run-0-1.4[0]"));
  EXPECT_THAT(ended_, IsEmpty());
}

TEST_F(LoweredLimits, ArraysOfTheTimeBeforeAreStillFound) {
  {
    SlurmExecutor before = make();
    before.submit(shards(10));
    poll_until(before, [&] { return tasks() == 10; });
    before.detach();
  }
  lower(4, 0, true);
  SlurmExecutor executor = make();
  executor.attach(shards(10));
  slurm_->set_state(9, SlurmState::kRunning);
  poll_until(executor, [&] { return started_.size() == 1; });
  EXPECT_EQ(started_.at(0).key.shard, 9u);
  EXPECT_THAT(slurm_->cancelled, IsEmpty());
}

TEST_F(Slurm, AnArrayOfOneTaskThatIsRefusedIsAUserError) {
  slurm_->on_submit = [] { throw SlurmError(SlurmTrouble::kArray, 2081, "Invalid job array specification"); };
  SlurmExecutor executor = make();
  executor.submit(shards(5));
  poll_until_ended(executor, 5);
  EXPECT_EQ(ended_.at(0).cause, EndCause::kUserError);
  EXPECT_THAT(ended_.at(0).detail, HasSubstr("array specification"));
}

constexpr auto kPolicyRefusal = [] { throw SlurmError(SlurmTrouble::kPolicy, 2050, "violates QOS policy"); };

TEST_F(Slurm, ALimitOnTheSizeOfOneJobIsAUserErrorAlsoWhileOthersAreInTheQueue) {
  slurm_->rivals = 7;
  slurm_->on_submit = kPolicyRefusal;
  std::vector<SlurmJob> trials;
  slurm_->on_trial = [&](const SlurmJob& job) { trials.push_back(job); };  // the smallest job would be taken
  SlurmExecutor executor = make();
  ShardStart large = shard(0);
  large.resources.cpus = 64;
  large.resources.memory_bytes = 1ull << 40;
  executor.submit({large});
  poll_until_ended(executor, 1);
  EXPECT_EQ(ended_.at(0).cause, EndCause::kUserError);
  EXPECT_THAT(ended_.at(0).detail, HasSubstr("violates QOS policy"));
  ASSERT_THAT(trials, SizeIs(1));
  EXPECT_EQ(trials[0].cpus, 1u);
  EXPECT_EQ(trials[0].memory_mib, 1u);
  EXPECT_EQ(trials[0].minutes, 1u);
}

TEST_F(Slurm, ALimitOfHowManyIsAUserErrorWhereNothingInTheQueueCanMakeRoom) {
  slurm_->on_submit = kPolicyRefusal;
  slurm_->on_trial = [](const SlurmJob&) { kPolicyRefusal(); };
  SlurmExecutor executor = make();
  executor.submit(shards(4));
  poll_until_ended(executor, 4);
  for (const ShardEvent& end : ended_) EXPECT_EQ(end.cause, EndCause::kUserError);
}

TEST_F(Slurm, ALimitOfHowManyIsWaitedForWhileJobsInTheQueueFillIt) {
  std::atomic<bool> full = true;
  slurm_->rivals = 1;
  slurm_->on_submit = [&] {
    if (full) kPolicyRefusal();
  };
  slurm_->on_trial = [](const SlurmJob&) { kPolicyRefusal(); };
  SlurmExecutor executor = make();
  executor.submit({shard(0)});
  poll_until(executor, [&] { return !executor.view().trouble.empty(); });
  (void)executor.poll(1500ms);
  EXPECT_THAT(executor.view().trouble, HasSubstr("violates QOS policy"));
  EXPECT_EQ(executor.view().shards["WAITING (queue full)"], 1u);
  EXPECT_THAT(ended_, IsEmpty());
  full = false;
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  EXPECT_EQ(executor.view().trouble, "");
}

TEST_F(Slurm, APlaceThatIsNotAvailableWaitsWithItsReasonAndOthersGoOn) {
  options_.site.gpus["H20"].partition = "h20";
  options_.site.gpus["H20"].gres = "gpu:h20";
  ShardStart drained = shard(0, "ws-run-0-1");
  drained.resources.gpus = 1;
  drained.resources.gpu_type = "H20";
  std::atomic<bool> open = false;
  slurm_->on_job = [&](const SlurmJob& job) {
    if (job.partition == "h20" && !open) throw SlurmError(SlurmTrouble::kClosed, 2070, "inactive or drain");
  };
  SlurmExecutor executor = make();
  executor.submit({drained});
  for (std::uint32_t n = 0; n < 5; ++n) executor.submit({shard(n, "ws-run-1-" + std::to_string(n))});
  const auto begin = Clock::now();
  poll_until(executor, [&] { return slurm_->submissions() == 5; });
  EXPECT_LT(Clock::now() - begin, 3s) << "the others must not wait for the place that is closed";
  EXPECT_THAT(executor.view().trouble, HasSubstr("inactive or drain"));
  EXPECT_EQ(executor.view().shards["WAITING (not available)"], 1u);
  EXPECT_THAT(ended_, IsEmpty());
  open = true;
  poll_until(executor, [&] { return slurm_->submissions() == 6; });
}

// One row for each kind of thing that a submission may meet, by the codes of slurm/slurm_errno.h.
TEST(SlurmTroubles, AreDecidedByOneTable) {
  const std::map<SlurmTrouble, std::vector<int>> kExpected = {
      {SlurmTrouble::kLimit, {EAGAIN, 2007}},
      {SlurmTrouble::kPolicy, {2050, 2074}},
      {SlurmTrouble::kArray, {2081}},
      {SlurmTrouble::kClosed, {2015, 2016, 2019, 2055, 2056, 2068, 2070, 2078, 2101, 2105, 2118, 2120, 2125}},
      {SlurmTrouble::kAway, {1001, 1007, 1800, 1804, 2027, 2131, 6000, 7000, ECONNREFUSED, EHOSTUNREACH}},
      {SlurmTrouble::kUnsure, {0, 1003, 1802, 5004, ETIMEDOUT, EPIPE}},
      {SlurmTrouble::kGone, {2017, 2021, 2084}},
      // No partition, access, resources, feature, account, time limit, reservation, QOS, GRES, dependency …
      {SlurmTrouble::kRefused,
       {2000, 2001, 2002, 2003, 2004, 2005, 2006, 2009, 2012, 2014, 2018, 2025, 2029, 2038, 2044, 2045,
        2048, 2051, 2052, 2053, 2057, 2066, 2069, 2072, 2114, 2115, 2119, 2122, 2127, 2130, 8000, 99999}}};
  for (const auto& [trouble, codes] : kExpected)
    for (const int code : codes) EXPECT_EQ(trouble_of(code), trouble) << code;
}

TEST(SlurmTroubles, MaxArrayTasksStandsInSchedulerParameters) {
  EXPECT_EQ(max_array_tasks("batch_sched_delay=0,max_array_tasks=30,bf_interval=1"), 30u);
  EXPECT_EQ(max_array_tasks("Max_Array_Tasks=7"), 7u);
  EXPECT_EQ(max_array_tasks("no_max_array_tasks=7"), 0u);
  EXPECT_EQ(max_array_tasks("max_array_tasks="), 0u);
  EXPECT_EQ(max_array_tasks(""), 0u);
}

// ---- what waits in the queue ----

class NeverStarts : public Slurm, public testing::WithParamInterface<const char*> {};
TEST_P(NeverStarts, EndsWithItsReason) {
  const ShardEvent end = end_in_state(SlurmState::kPending, [](SlurmTask& t) { t.reason = GetParam(); });
  EXPECT_EQ(end.cause, EndCause::kUserError);
  EXPECT_THAT(end.detail, HasSubstr(GetParam()));
}
INSTANTIATE_TEST_SUITE_P(LimitsOfOneJob, NeverStarts,
                         testing::Values("QOSMaxMemoryPerJob", "QOSMaxCpuPerJobLimit", "QOSMaxGRESPerJob",
                                         "QOSMaxWallDurationPerJobLimit", "QOSMaxMemoryPerNode", "QOSMinGRES",
                                         "AssocMaxCpuPerJobLimit", "AssocMaxMemPerJob", "AssocMaxGRESPerNode",
                                         "MaxMemPerLimit", "InvalidQOS", "PartitionTimeLimit"));

class StartsLater : public Slurm, public testing::WithParamInterface<const char*> {};
TEST_P(StartsLater, Waits) {
  SlurmExecutor executor = make();
  executor.submit({shard(0)});
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  slurm_->set(0, [](SlurmTask& t) { t.reason = GetParam(); });
  (void)executor.poll(1200ms);
  EXPECT_EQ(executor.view().shards["PENDING (" + std::string(GetParam()) + ")"], 1u);
  EXPECT_THAT(slurm_->cancelled, IsEmpty());
}
INSTANTIATE_TEST_SUITE_P(UntilThereIsRoom, StartsLater,
                         testing::Values("Resources", "Priority", "QOSMaxJobsPerUserLimit", "QOSGrpCpuLimit",
                                         "QOSMaxSubmitJobPerUserLimit", "AssocGrpJobsLimit",
                                         "MaxJobsPerAccount", "PartitionDown", "PartitionInactive",
                                         "JobHeldUser", "ReqNodeNotAvail", "Reservation"));

TEST_F(Slurm, ALimitOfThisUsersEndsAJobWhereNothingOfTheUserRuns) {
  options_.alone_s = 0.5;
  SlurmExecutor executor = make();
  executor.submit(shards(2));
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  slurm_->set_state(0, SlurmState::kRunning);
  slurm_->set(1, [](SlurmTask& t) { t.reason = "QOSMaxCpuPerUserLimit"; });
  (void)executor.poll(2s);
  EXPECT_THAT(slurm_->cancelled, IsEmpty()) << "the other one's end makes room";
  last_words(0, {{"cause", "finished"}});
  slurm_->set_state(0, SlurmState::kCompleted);
  poll_until_ended(executor, 2);
  EXPECT_EQ(ended_.at(1).cause, EndCause::kUserError);
  EXPECT_THAT(ended_.at(1).detail, HasSubstr("QOSMaxCpuPerUserLimit"));
}

TEST_F(Slurm, HeldShardsAreNamedAndHaveNoExpectedStart) {
  SlurmExecutor executor = make();
  executor.submit(shards(4));
  poll_until(executor, [&] { return slurm_->submissions() == 1; });
  const std::int64_t now = std::time(nullptr);
  for (const std::uint32_t index : {0u, 2u, 3u})
    slurm_->set(index, [&](SlurmTask& t) {
      t.held = true;
      t.reason = "job requeued in held state";
      t.started = now - 3;
    });
  slurm_->set(1, [&](SlurmTask& t) { t.started = now - 1000; });  // an expectation of long ago
  poll_until(executor, [&] { return !executor.view().held.empty(); });
  run::ExecutorView view = executor.view();
  EXPECT_EQ(view.next_start, 0);
  ASSERT_THAT(view.held, SizeIs(1));
  EXPECT_EQ(view.held[0].tasks, "100_[0,2-3]");
  EXPECT_EQ(view.held[0].reason, "job requeued in held state");
  slurm_->set(1, [&](SlurmTask& t) { t.started = now + 500; });
  slurm_->set(2, [&](SlurmTask& t) {  // released
    t.held = false;
    t.reason = "Resources";
    t.started = now + 100;
  });
  poll_until(executor, [&] { return executor.view().next_start == now + 100; });
  EXPECT_EQ(executor.view().held.at(0).tasks, "100_[0,3]");
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

// What `sh` makes of the command: its words, folder and variables, as seen by a program that prints them.
std::string run_by_sh(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  std::string out;
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return out;
}

TEST(ByHand, AShellReadsTheCommandAsTheExecutorStartsIt) {
  const Scratch scratch;
  const std::filesystem::path folder = scratch / "lo c; $(x)`y` 'q' \"d\" %j \\b";
  std::filesystem::create_directories(folder);
  const std::filesystem::path program = folder / "show it";
  write_file_atomic(program,
                    "#!/bin/sh\npwd\nfor word; do printf '<%s>\\n' \"$word\"; done\n"
                    "printf '%s %s %s\\n' \"$OMP_NUM_THREADS\" \"$A\" \"${CUDA_VISIBLE_DEVICES-unset}\"\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  ShardStart start;
  start.key = {0, 7};
  start.job_file = folder / "job.json";
  start.program = program;
  start.arguments = {
      "echo \"it is $HOME; $(id -un)\"; exit 7", "a b", "*", "", "it's", "~", "#x", "a\nb", "--x=1"};
  start.resources.cpus = 3;
  std::string words;
  for (const std::string& word : start.arguments) words += "<" + word + ">\n";
  words += "<" + start.job_file.string() + ">\n<7>\n";
  EXPECT_EQ(run_by_sh(command_by_hand(start, folder, nullptr)), folder.string() + "\n" + words + "3  \n");
  start.resources.gpus = 1;
  EXPECT_EQ(run_by_sh(command_by_hand(start, folder, nullptr)),
            folder.string() + "\n" + words + "3  " +
                (std::getenv("CUDA_VISIBLE_DEVICES") ? std::getenv("CUDA_VISIBLE_DEVICES") : "unset") + "\n");

  workflow::SitePlace place;
  place.setup = {"B=set # by the site", "cd ."};
  place.container = {"env", "A=$B"};
  place.environment = {{"A", "not this"}, {"OMP_NUM_THREADS", "3"}};
  place.scratch = (scratch / "tmp").string();
  EXPECT_THAT(run_by_sh(command_by_hand(start, folder, &place)), HasSubstr(words + "3 set "));
  EXPECT_TRUE(std::filesystem::exists(scratch / "tmp"));
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
