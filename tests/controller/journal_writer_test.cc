// In which order things come to disk, and to the executor.
#include "journal_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/records/done_shards.h"

namespace warpsmith::controller {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class Recorder : public run::Executor {
 public:
  std::function<void()> before_submit = [] {};
  std::vector<std::uint32_t> submitted;

  void submit(const std::vector<run::ShardStart>& shards) override {
    before_submit();
    for (const run::ShardStart& one : shards) submitted.push_back(one.key.shard);
  }
  void cancel(const std::vector<run::ShardKey>&) override {}
  std::vector<run::ShardEvent> poll(std::chrono::milliseconds) override { return {}; }
  std::size_t capacity() const override { return 1; }
  void shut_down() override {}
};

class JournalWriterTest : public testing::Test {
 protected:
  JournalWriter open() {
    return JournalWriter(
        scratch_.path(), [&](run::Event&& event) { replayed_.push_back(event.kind); }, [&] { return now_; });
  }
  // Kinds of events that a controller which came now would find, but for those that say that one has begun.
  std::vector<run::EventKind> on_disk() const {
    std::vector<run::EventKind> kinds;
    run::read_journal(scratch_ / "journal", [&](run::Event&& event) {
      if (event.kind != run::EventKind::kOpened) kinds.push_back(event.kind);
    });
    return kinds;
  }
  static void note(JournalWriter& writer, run::EventKind kind) {
    run::Event event{.kind = kind};
    writer.note(event);
    EXPECT_GT(event.time_ms, 0u);
  }

  Scratch scratch_;
  std::chrono::steady_clock::time_point now_{1h};
  std::vector<run::EventKind> replayed_;
};

TEST_F(JournalWriterTest, ShardsAreHandedOverBehindTheJournal) {
  JournalWriter writer = open();
  Recorder executor;
  note(writer, run::EventKind::kSubmitted);
  writer.hand_over_later({.key = {7, 3}});
  EXPECT_TRUE(executor.submitted.empty());
  EXPECT_EQ(writer.waiting(), 1u);
  executor.before_submit = [&] { EXPECT_THAT(on_disk(), ElementsAre(run::EventKind::kSubmitted)); };
  writer.commit(executor);
  EXPECT_THAT(executor.submitted, ElementsAre(3));
  writer.commit(executor);
  EXPECT_THAT(executor.submitted, ElementsAre(3)) << "once";
  EXPECT_EQ(writer.waiting(), 0u);
}

TEST_F(JournalWriterTest, WhatIsDoneIsOnDiskBeforeTheJournalSaysSo) {
  fs::create_directories(scratch_ / "job");
  JournalWriter writer = open();
  note(writer, run::EventKind::kShardEnded);
  writer.note_done(scratch_ / "job", 4);
  writer.note_done(scratch_ / "job", 5);
  EXPECT_TRUE(read_done_shards(scratch_ / "job").empty());
  writer.write();
  EXPECT_THAT(read_done_shards(scratch_ / "job"), ElementsAre(4, 5));
  // Where that cannot be written, the journal does not say it either.
  note(writer, run::EventKind::kShardEnded);
  writer.note_done(scratch_ / "no such job", 1);
  EXPECT_THROW(writer.write(), Error);
  EXPECT_EQ(on_disk().size(), 1u);
}

TEST_F(JournalWriterTest, WhoHasLostTheRunHandsNothingOver) {
  JournalWriter writer = open();
  Recorder executor;
  note(writer, run::EventKind::kSubmitted);
  writer.hand_over_later({.key = {7, 3}});
  const JournalWriter later = open();
  EXPECT_EQ(later.epoch(), writer.epoch() + 1);
  try {
    writer.commit(executor);
    ADD_FAILURE() << "it went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), kExitBusy) << error.what();
  }
  EXPECT_TRUE(executor.submitted.empty());
}

TEST_F(JournalWriterTest, EventsWaitForCompanyAndNotForLong) {
  JournalWriter writer = open();
  writer.write();
  EXPECT_FALSE(writer.pending());
  note(writer, run::EventKind::kSubmitted);
  EXPECT_TRUE(writer.pending());
  EXPECT_EQ(writer.may_wait(), 50ms);
  now_ += 30ms;
  note(writer, run::EventKind::kShardStarted);
  EXPECT_EQ(writer.may_wait(), 20ms) << "the oldest counts";
  now_ += 100ms;
  EXPECT_EQ(writer.may_wait(), 0ms);
  writer.write();
  note(writer, run::EventKind::kShardStarted);
  EXPECT_EQ(writer.may_wait(), 50ms);
}

TEST_F(JournalWriterTest, TheNextOneReadsWhatWasWritten) {
  {
    JournalWriter writer = open();
    note(writer, run::EventKind::kSubmitted);
    note(writer, run::EventKind::kShardStarted);
    writer.write();
    note(writer, run::EventKind::kShardEnded);  // dies with the process
  }
  replayed_.clear();
  (void)open();
  EXPECT_THAT(replayed_, ElementsAre(run::EventKind::kOpened, run::EventKind::kSubmitted,
                                     run::EventKind::kShardStarted));
}

}  // namespace
}  // namespace warpsmith::controller
