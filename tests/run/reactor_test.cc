#include "warpsmith/run/reactor.h"

#include <gtest/gtest.h>

#include "warpsmith/base/error.h"

namespace warpsmith::run {
namespace {

using Ranges = std::vector<ShardRange>;
using Numbers = std::vector<std::uint32_t>;

StageRules stage(std::string name, std::vector<std::uint32_t> needs = {}) {
  return {.name = std::move(name), .needs = std::move(needs)};
}
Event opened() { return {.kind = EventKind::kOpened}; }
Event started(std::string name, std::string hash = "h") {
  return {.kind = EventKind::kStageStarted, .name = std::move(name), .hash = std::move(hash)};
}
Event added(std::uint32_t job, std::uint32_t shards, std::uint32_t execution = 0) {
  return {.kind = EventKind::kJobAdded, .execution = execution, .job = job, .end = shards, .name = "j"};
}
Event ended(std::uint32_t job, std::uint32_t shard, EndCause cause = EndCause::kFinished,
            std::uint32_t open = 0) {
  return {.kind = EventKind::kShardEnded, .job = job, .shard = shard, .cause = cause, .open = open};
}
Event finished(std::uint32_t execution) {
  return {.kind = EventKind::kStageFinished, .execution = execution};
}

// Commands, one at a time, ending with "nothing else happened".
class ReactorTest : public ::testing::Test {
 protected:
  void make(std::vector<StageRules> stages, std::vector<std::size_t> places = {}) {
    reactor_ = std::make_unique<Reactor>(std::move(stages), std::move(places));
  }
  // One running stage "s" with one job of `shards` shards, all in flight.
  void run_one(StageRules rules, std::uint32_t shards) {
    make({std::move(rules)});
    apply(started("s"));
    apply(added(0, shards));
    expect_submitted({{0, 0, shards}});
  }
  void apply(const Event& event) { reactor_->apply(event); }
  Commands next() { return reactor_->next(room_); }
  void expect_nothing() {
    const Commands c = next();
    EXPECT_TRUE(c.start.empty());
    EXPECT_EQ(c.submit, Ranges{});
    EXPECT_TRUE(c.cancel.empty());
    EXPECT_EQ(c.done, Numbers{});
    EXPECT_EQ(c.failed, Numbers{});
  }
  void expect_started(const Numbers& stages) {
    Commands c = next();
    EXPECT_EQ(std::exchange(c.start, {}), stages);
    EXPECT_TRUE(c.empty());
    expect_nothing();
  }
  void expect_submitted(const Ranges& ranges) {
    Commands c = next();
    EXPECT_EQ(std::exchange(c.submit, {}), ranges);
    c.start.clear();
    EXPECT_TRUE(c.empty());
    expect_nothing();
  }
  void expect_done(const Numbers& jobs) {
    Commands c = next();
    EXPECT_EQ(std::exchange(c.done, {}), jobs);
    EXPECT_TRUE(c.empty());
    expect_nothing();
  }

  std::unique_ptr<Reactor> reactor_;
  std::size_t room_ = 100;
};

TEST_F(ReactorTest, StagesStartWhenAllTheyNeedAreFinished) {
  make({stage("a"), stage("b"), stage("c", {0, 1})});
  expect_started({0, 1});
  apply(started("a"));
  apply(started("b"));
  expect_nothing();
  apply(finished(0));
  expect_nothing();
  apply(finished(1));
  expect_started({2});
  EXPECT_FALSE(reactor_->at_end());
  reactor_->skip(2);
  expect_nothing();
  EXPECT_TRUE(reactor_->at_end());
}

TEST_F(ReactorTest, JobIsDoneWhenItsLastShardIs) {
  run_one(stage("s"), 3);
  apply(ended(0, 2));
  apply(ended(0, 0));
  expect_nothing();
  apply(ended(0, 1));
  expect_done({0});
  EXPECT_EQ(reactor_->in_flight(), 0u);
}

TEST_F(ReactorTest, JobWithoutItemsIsDoneAtOnce) {
  make({stage("s")});
  apply(started("s"));
  apply(added(0, 0));
  Commands c = next();
  EXPECT_EQ(c.done, Numbers{0});
  expect_nothing();
}

TEST_F(ReactorTest, JobsAreDoneInTheOrderInWhichTheyEnded) {
  make({stage("s")});
  apply(started("s"));
  apply(added(0, 1));
  apply(added(1, 1));
  expect_submitted({{0, 0, 1}, {1, 0, 1}});
  apply(ended(1, 0));
  apply(ended(0, 0));
  expect_done({1, 0});
  EXPECT_EQ(reactor_->completed_of(0), (Numbers{1, 0}));
}

TEST_F(ReactorTest, NoMoreInFlightThanThereIsRoomFor) {
  room_ = 2;
  make({stage("s")});
  apply(started("s"));
  apply(added(0, 5));
  expect_submitted({{0, 0, 2}});
  apply(ended(0, 1));
  expect_submitted({{0, 2, 3}});
  apply(ended(0, 0));
  apply(ended(0, 2));
  expect_submitted({{0, 3, 5}});
}

TEST_F(ReactorTest, MaxJobsHoldsOneStageAndNotTheOthers) {
  StageRules narrow = stage("narrow");
  narrow.max_jobs = 1;
  make({narrow, stage("wide")});
  apply(started("narrow"));
  apply(started("wide"));
  apply(added(0, 3, 0));
  apply(added(1, 2, 1));
  expect_submitted({{0, 0, 1}, {1, 0, 2}});
  apply(ended(0, 0));
  expect_submitted({{0, 1, 2}});
}

// A stage whose jobs go to a place.
StageRules stage_at(std::string name, std::uint32_t place, std::vector<std::uint32_t> needs = {}) {
  StageRules rules = stage(std::move(name), std::move(needs));
  rules.places = {{"j", place}};
  return rules;
}

TEST_F(ReactorTest, TheScarcestPlaceComesFirst) {
  make({stage_at("many", 1), stage_at("few", 2), stage_at("cpu", 0), stage_at("as many", 3)},
       {1000, 8, 1, 8});
  expect_started({1, 0, 3, 2});
  for (const char* name : {"many", "few", "cpu", "as many"}) apply(started(name));
  for (const std::uint32_t job : {0u, 1u, 2u, 3u}) apply(added(job, 2, job));
  expect_submitted({{1, 0, 2}, {0, 0, 2}, {3, 0, 2}, {2, 0, 2}});
}

TEST_F(ReactorTest, NoPlaceTakesTheWholeRoomWhileOthersMayBeWanted) {
  room_ = 12;
  make({stage_at("a", 1), stage_at("b", 2), stage_at("cpu", 0, {1})}, {1000, 1, 1});
  apply(started("a"));
  apply(started("b"));
  apply(added(0, 100, 0));
  expect_submitted({{0, 0, 8}});  // a sixth of the room is kept for b, and one for the CPU
  apply(added(1, 100, 1));
  expect_submitted({{1, 0, 2}});
  apply(ended(0, 0));
  expect_submitted({{0, 8, 9}});
  apply(ended(1, 0));
  expect_submitted({{1, 2, 3}});  // what is b's own does not go to a
  apply({.kind = EventKind::kStageFailed, .execution = 1, .text = "b and what needs it want nothing more"});
  EXPECT_EQ(next().submit, (Ranges{{0, 9, 11}}));
  apply(ended(1, 1, EndCause::kCancelled, 1));
  apply(ended(1, 2, EndCause::kCancelled, 1));
  expect_submitted({{0, 11, 13}});
  EXPECT_EQ(reactor_->in_flight(), 12u);
}

TEST_F(ReactorTest, ASmallRoomIsSharedAsFarAsItGoes) {
  for (const std::size_t room : {1u, 2u, 3u, 4u}) {
    room_ = room;
    make({stage_at("a", 1), stage_at("b", 2)}, {1000, 4, 4});
    apply(started("a"));
    apply(started("b"));
    apply(added(0, 100, 0));
    expect_submitted({{0, 0, static_cast<std::uint32_t>(room == 1 ? 1 : room - 1)}});
    apply(added(1, 100, 1));
    if (room == 1)
      expect_nothing();
    else
      expect_submitted({{1, 0, 1}});
  }
}

TEST_F(ReactorTest, PlacesHoldWhenARunGoesOn) {
  room_ = 4;
  make({stage_at("a", 1), stage_at("b", 2)}, {1000, 4, 1});
  const auto begin = [&] {
    expect_started({1, 0});
    apply(started("a"));
    apply(started("b"));
  };
  begin();
  apply(added(0, 100, 0));
  apply(added(1, 100, 1));
  expect_submitted({{1, 0, 3}, {0, 0, 1}});
  apply(opened());
  begin();
  expect_nothing();  // what is in flight still is
  apply(ended(1, 0));
  expect_submitted({{1, 3, 4}});
  apply(ended(0, 0));
  expect_submitted({{0, 1, 2}});
}

TEST_F(ReactorTest, APlaceThatThereIsNotIsAnError) { EXPECT_THROW(make({stage_at("a", 3)}, {1, 1}), Error); }

struct RetryCase {
  EndCause cause;
  int starts;  // in all, where no attempt gets further
};
class RetryTest : public ReactorTest, public ::testing::WithParamInterface<RetryCase> {};

TEST_P(RetryTest, ByCause) {
  StageRules rules = stage("s");
  rules.retry.times = {{EndCause::kCrash, 4}};
  run_one(rules, 1);
  int starts = 1;
  for (;;) {
    apply(ended(0, 0, GetParam().cause, 5));
    const Commands c = next();
    if (c.submit.empty()) {
      EXPECT_EQ(c.failed, Numbers{0});
      break;
    }
    ASSERT_LT(++starts, 200);
  }
  EXPECT_EQ(starts, GetParam().starts);
  EXPECT_EQ(reactor_->stage(0), StageState::kFailed);
  EXPECT_TRUE(reactor_->at_end());
  expect_nothing();
}
// The first end has got further than nothing, so the count begins with it.
INSTANTIATE_TEST_SUITE_P(
    Causes, RetryTest,
    ::testing::Values(RetryCase{EndCause::kUserError, 1}, RetryCase{EndCause::kDiskFull, 1},
                      RetryCase{EndCause::kFailed, 2}, RetryCase{EndCause::kFinished, 2},
                      RetryCase{EndCause::kTimeout, 2}, RetryCase{EndCause::kOutOfMemory, 3},
                      RetryCase{EndCause::kCrash, 5}, RetryCase{EndCause::kLaunchFailure, 4},
                      RetryCase{EndCause::kNodeFailure, 6}));

TEST_F(ReactorTest, ShardThatGetsFurtherHasAllItsRetriesAgain) {
  run_one(stage("s"), 1);
  for (std::uint32_t open = 50; open > 1; --open) {
    apply(ended(0, 0, EndCause::kCrash, open));
    expect_submitted({{0, 0, 1}});
  }
  for (int i = 0; i < 1; ++i) {
    apply(ended(0, 0, EndCause::kCrash, 2));
    expect_submitted({{0, 0, 1}});
  }
  apply(ended(0, 0, EndCause::kCrash, 2));
  EXPECT_EQ(next().failed, Numbers{0});
}

TEST_F(ReactorTest, CrashAfterTheLastRecordIsAFinish) {
  run_one(stage("s"), 1);
  apply(ended(0, 0, EndCause::kCrash, 0));
  expect_done({0});
}

TEST_F(ReactorTest, MemoryRetriesAreCounted) {
  run_one(stage("s"), 1);
  apply(ended(0, 0, EndCause::kOutOfMemory, 1));
  expect_submitted({{0, 0, 1, 1}});
  apply(ended(0, 0, EndCause::kOutOfMemory, 1));
  expect_submitted({{0, 0, 1, 2}});
}

TEST_F(ReactorTest, LostAndCancelledShardsCostNoRetry) {
  run_one(stage("s"), 1);
  for (int i = 0; i < 500; ++i) {
    apply(ended(0, 0, i % 2 == 0 ? EndCause::kUnknown : EndCause::kCancelled, 1));
    expect_submitted({{0, 0, 1}});
  }
}

TEST_F(ReactorTest, EndSaidTwiceCountsOnce) {
  run_one(stage("s"), 2);
  apply(ended(0, 0));
  apply(ended(0, 0, EndCause::kCrash, 3));
  expect_nothing();
  EXPECT_EQ(reactor_->in_flight(), 1u);
  apply(ended(0, 1));
  expect_done({0});
}

TEST_F(ReactorTest, TolerateSurvivesItsShareAndNoMore) {
  StageRules rules = stage("s");
  rules.tolerate = 0.5;
  run_one(rules, 4);
  apply(ended(0, 0, EndCause::kUserError, 1));
  apply(ended(0, 1, EndCause::kUserError, 1));
  apply(ended(0, 2));
  apply(ended(0, 3));
  expect_done({0});
  EXPECT_TRUE(reactor_->shard_failed({0, 0}));
  EXPECT_FALSE(reactor_->shard_failed({0, 2}));
}

// What follows it would go on without any of its answers: a server whose budget is used up is no small loss.
TEST_F(ReactorTest, TheOnlyShardOfAJobIsNotTolerated) {
  StageRules rules = stage("s");
  rules.tolerate = 1;
  run_one(rules, 1);
  apply(ended(0, 0, EndCause::kUserError, 1));
  EXPECT_EQ(next().failed, Numbers{0});
}

TEST_F(ReactorTest, OneFailureTooManyFailsTheStageAndCancelsTheRest) {
  StageRules rules = stage("s");
  rules.tolerate = 0.25;
  run_one(rules, 4);
  apply(ended(0, 0, EndCause::kUserError, 1));
  expect_nothing();
  apply(ended(0, 1, EndCause::kUserError, 1));
  Commands c = next();
  EXPECT_EQ(std::exchange(c.failed, {}), Numbers{0});
  EXPECT_EQ(std::exchange(c.cancel, {}), (std::vector<ShardKey>{{0, 2}, {0, 3}}));
  EXPECT_TRUE(c.empty());
  apply(ended(0, 2, EndCause::kCancelled, 1));
  apply(ended(0, 3));
  expect_nothing();
  EXPECT_TRUE(reactor_->at_end());
}

TEST_F(ReactorTest, StagesThatDoNotNeedAFailedOneGoOn) {
  make({stage("a"), stage("b"), stage("needs_a", {0}), stage("needs_that", {2}), stage("needs_b", {1})});
  expect_started({0, 1});
  apply(started("a"));
  apply(started("b"));
  apply({.kind = EventKind::kStageFailed, .execution = 0, .text = "why"});
  expect_nothing();
  EXPECT_EQ(reactor_->stage(2), StageState::kBlocked);
  EXPECT_EQ(reactor_->stage(3), StageState::kBlocked);
  apply(finished(1));
  expect_started({4});
  reactor_->skip(4);
  EXPECT_TRUE(reactor_->at_end());
}

// Stage "server", which "a" and "b" use; "b" needs "a".
class ServiceTest : public ReactorTest {
 protected:
  ServiceTest() {
    StageRules server = stage("server"), a = stage("a"), b = stage("b", {1});
    server.is_service = true;
    a.uses = b.uses = {0};
    make({server, a, b});
  }
  // "a" runs, and waits with a job of two shards for its service, whose shard is in flight.
  void begin() {
    expect_started({1});
    apply(started("a"));
    apply(added(0, 2));
    expect_started({0});
    apply(started("server"));
    apply(added(1, 1, 1));
    expect_submitted({{1, 0, 1}});
  }
  void up() { apply({.kind = EventKind::kServiceUp, .execution = 1}); }
};

TEST_F(ServiceTest, StartsWithItsFirstUserAndHoldsItsShardsUntilItIsUp) {
  begin();
  EXPECT_FALSE(reactor_->is_up(0));
  EXPECT_EQ(reactor_->services_in_flight(), 1u);
  up();
  EXPECT_TRUE(reactor_->is_up(0));
  expect_submitted({{0, 0, 2}});
}

TEST_F(ServiceTest, EndsWithItsLastUser) {
  begin();
  up();
  expect_submitted({{0, 0, 2}});
  apply(ended(0, 0));
  apply(ended(0, 1));
  EXPECT_EQ(next().done, (Numbers{0}));
  apply(finished(0));
  expect_started({2});  // "b" goes on with the same server
  apply(started("b"));
  expect_nothing();
  apply(finished(2));
  const Commands last = next();
  EXPECT_EQ(last.cancel, (std::vector<ShardKey>{{1, 0}}));
  EXPECT_EQ(reactor_->stage(0), StageState::kFinished);
  EXPECT_FALSE(reactor_->at_end());
  apply(ended(1, 0, EndCause::kCancelled, 1));
  expect_nothing();
  EXPECT_TRUE(reactor_->at_end());
}

TEST_F(ServiceTest, IsNotStartedWhereNobodyRuns) {
  reactor_->skip(1);
  reactor_->skip(2);
  expect_nothing();
  EXPECT_TRUE(reactor_->at_end());
}

// Its user has two shards; one gets further each time that `open` falls.
TEST_F(ServiceTest, ADeadOneIsStartedAgainAndItsUsersWaitWithoutFault) {
  begin();
  const std::uint32_t open[] = {9, 8, 7, 6, 5, 4};
  for (std::size_t life = 0; life < std::size(open); ++life) {
    up();
    expect_submitted(life == 0 ? Ranges{{0, 0, 2}} : Ranges{{0, 0, 1}, {0, 1, 2}});
    apply(ended(1, 0, EndCause::kFailed, 1));
    expect_submitted({{1, 0, 1}});
    apply(ended(0, 0, EndCause::kFailed, open[life]));
    apply(ended(0, 1, EndCause::kFailed, 9));
    expect_nothing();
  }
  EXPECT_EQ(reactor_->stage(1), StageState::kRunning);
}

// On a cluster the server may be up again before it is known that its asker has ended.
TEST_F(ServiceTest, WhoAskedADeadOneIsInnocentAlsoWhereItLivesAgain) {
  begin();
  for (int life = 0; life < 3; ++life) {
    up();
    expect_submitted(life == 0 ? Ranges{{0, 0, 2}} : Ranges{{0, 1, 2}});
    apply(ended(1, 0, EndCause::kFailed, 1));
    expect_submitted({{1, 0, 1}});
    up();
    expect_nothing();
    apply(ended(0, 1, EndCause::kFailed, 9u - static_cast<std::uint32_t>(life)));
    expect_submitted({{0, 1, 2}});
    apply(ended(1, 0, EndCause::kPreempted, 1));
    expect_submitted({{1, 0, 1}});
    apply(ended(0, 1, EndCause::kFailed, 9u - static_cast<std::uint32_t>(life)));
    expect_nothing();
  }
  EXPECT_EQ(reactor_->stage(1), StageState::kRunning);
}

TEST_F(ServiceTest, OneThatDiesAgainAndAgainBeforeItHasAnsweredFailsItsUsers) {
  begin();
  int lives = 0;
  for (int life = 0; life < 20 && reactor_->stage(0) == StageState::kRunning; ++life) {
    up();
    expect_submitted(life == 0 ? Ranges{{0, 0, 2}} : Ranges{{0, 0, 1}, {0, 1, 2}});
    apply(ended(1, 0, EndCause::kFailed, 1));
    for (const std::uint32_t shard : {0u, 1u}) apply(ended(0, shard, EndCause::kFailed, 9));
    if (reactor_->stage(0) == StageState::kRunning) expect_submitted({{1, 0, 1}});
    lives = life + 1;
  }
  EXPECT_EQ(lives, kServiceRestarts + 2) << "at the first end its user had got further";
  EXPECT_EQ(reactor_->stage(0), StageState::kFailed);
  EXPECT_EQ(reactor_->stage(1), StageState::kFailed);
}

TEST_F(ServiceTest, OneThatNeverGetsUpFailsItsUsers) {
  begin();
  apply(ended(1, 0, EndCause::kFailed, 1));
  expect_submitted({{1, 0, 1}});
  apply(ended(1, 0, EndCause::kFailed, 1));
  EXPECT_EQ(next().failed, (Numbers{0, 1}));
  EXPECT_EQ(reactor_->stage(1), StageState::kFailed);
  EXPECT_EQ(reactor_->stage(2), StageState::kBlocked);
  EXPECT_TRUE(reactor_->at_end());
}

// A controller was killed between the last record of "a" and the news of it.
TEST_F(ServiceTest, IsNotStartedForAStageThatIsDoneAtOnce) {
  begin();
  up();
  expect_submitted({{0, 0, 2}});
  apply(opened());
  reactor_->skip(2);
  apply(ended(1, 0, EndCause::kUnknown, 1));
  for (const std::uint32_t shard : {0u, 1u}) apply(ended(0, shard, EndCause::kUnknown));
  expect_started({1});
  apply(started("a"));
  const Commands commands = next();
  EXPECT_EQ(commands.done, (Numbers{0}));
  EXPECT_EQ(commands.start, Numbers{});
  apply(finished(0));
  expect_nothing();
  EXPECT_TRUE(reactor_->at_end());
}

TEST_F(ServiceTest, AfterAJobThatIsNotTheLastItIsStarted) {
  begin();
  apply(opened());
  apply(ended(1, 0, EndCause::kUnknown, 1));
  expect_started({1});
  apply(started("a"));
  apply(added(2, 0));  // without items: done at once
  EXPECT_EQ(next().done, (Numbers{2}));
  expect_started({0});
}

// It died, and so did who asked it, while no controller looked.
TEST_F(ServiceTest, WhoAskedOneThatDiedMeanwhileIsInnocent) {
  StageRules server = stage("server"), a = stage("a");
  server.is_service = true;
  a.uses = {0};
  a.retry.times[EndCause::kFailed] = 0;
  make({server, a});
  begin();
  up();
  expect_submitted({{0, 0, 2}});
  apply(opened());
  expect_started({1});
  apply(started("a"));
  expect_started({0});
  apply(started("server"));
  apply(ended(1, 0, EndCause::kTimeout, 1));
  apply(ended(0, 0, EndCause::kFailed, 3));
  EXPECT_EQ(reactor_->stage(1), StageState::kRunning);
}

TEST_F(ServiceTest, StartsAgainWhenTheRunGoesOn) {
  begin();
  up();
  expect_submitted({{0, 0, 2}});
  apply(opened());
  EXPECT_FALSE(reactor_->is_up(0));
  apply(ended(1, 0, EndCause::kUnknown, 1));
  for (const std::uint32_t shard : {0u, 1u}) apply(ended(0, shard, EndCause::kUnknown, 3));
  expect_started({1});
  apply(started("a"));
  expect_started({0});
  apply(started("server"));
  expect_submitted({{1, 0, 1}});
  up();
  expect_submitted({{0, 0, 1}, {0, 1, 2}});
}

TEST_F(ReactorTest, StopSubmitsAndStartsNothingMore) {
  room_ = 1;
  make({stage("s"), stage("t", {0})});
  apply(started("s"));
  apply(added(0, 3));
  expect_submitted({{0, 0, 1}});
  reactor_->stop();
  apply(ended(0, 0));
  apply(finished(0));
  expect_nothing();
}

// --- going on after a controller has died

TEST_F(ReactorTest, WorkInFlightIsUnresolvedUntilItsRecordsDecide) {
  run_one(stage("s"), 3);
  apply(ended(0, 0));
  apply(opened());
  EXPECT_EQ(reactor_->unresolved(), (std::vector<ShardKey>{{0, 1}, {0, 2}}));
  apply(ended(0, 1, EndCause::kUnknown, 0));
  apply(ended(0, 2, EndCause::kUnknown, 4));
  expect_started({0});
  apply(started("s"));
  expect_submitted({{0, 2, 3}});
  apply(ended(0, 2));
  expect_done({0});
}

TEST_F(ReactorTest, JobThatEndedWhileNobodyCouldBeToldIsDoneWhenItsStageGoesOn) {
  run_one(stage("s"), 1);
  apply(opened());
  apply(ended(0, 0, EndCause::kUnknown, 0));
  expect_started({0});
  apply(started("s"));
  expect_done({0});
}

TEST_F(ReactorTest, OldExecutionOfAChangedStageStaysAsleep) {
  run_one(stage("s"), 2);
  apply(opened());
  apply(ended(0, 0, EndCause::kUnknown, 1));
  apply(ended(0, 1, EndCause::kUnknown, 1));
  expect_started({0});
  apply(started("s", "other hash"));
  expect_nothing();
  apply(added(1, 1, 1));
  expect_submitted({{1, 0, 1}});
}

TEST_F(ReactorTest, FailedShardsHaveAllRetriesAgainWhenTheRunIsStartedAgain) {
  run_one(stage("s"), 2);
  apply(ended(0, 0));
  apply(ended(0, 1, EndCause::kUserError, 1));
  EXPECT_EQ(next().failed, Numbers{0});
  apply(opened());
  expect_started({0});
  apply(started("s"));
  expect_submitted({{0, 1, 2}});
  apply(ended(0, 1));
  expect_done({0});
}

TEST_F(ReactorTest, ToleratedFailuresOfAJobThatWasToldStayFailed) {
  StageRules rules = stage("s");
  rules.tolerate = 0.5;
  run_one(rules, 2);
  apply(ended(0, 0));
  apply(ended(0, 1, EndCause::kUserError, 1));
  expect_done({0});
  apply(opened());
  expect_started({0});
  apply(started("s"));
  expect_nothing();
  EXPECT_EQ(reactor_->completed_of(0), Numbers{0});
}

TEST_F(ReactorTest, DroppedExecutionBeginsAnew) {
  run_one(stage("s"), 1);
  apply(ended(0, 0));
  expect_done({0});
  apply(opened());
  apply({.kind = EventKind::kStageDropped, .execution = 0});
  EXPECT_EQ(reactor_->execution_number("s", "h"), 1u);
  expect_started({0});
  apply(started("s"));
  apply(added(1, 1, 1));
  expect_submitted({{1, 0, 1}});
}

TEST_F(ReactorTest, EventsThatFitNoStateAreErrors) {
  make({stage("s")});
  EXPECT_THROW(apply(ended(0, 0)), Error);
  EXPECT_THROW(apply(added(0, 1)), Error);
  apply(started("s"));
  EXPECT_THROW(apply(added(1, 1)), Error);
  apply(added(0, 2));
  EXPECT_THROW(apply(ended(0, 2)), Error);
  apply({.kind = EventKind::kSubmitted, .job = 0, .shard = 0, .end = 1});
  EXPECT_THROW(apply({.kind = EventKind::kSubmitted, .job = 0, .shard = 0, .end = 1}), Error);
  EXPECT_THROW(apply({.kind = EventKind::kSubmitted, .job = 0, .shard = 1, .end = 3}), Error);
}

}  // namespace
}  // namespace warpsmith::run
