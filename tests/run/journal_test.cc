#include "warpsmith/run/journal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "warpsmith/base/error.h"

namespace warpsmith::run {
namespace {

// A folder of its own for each test, removed afterwards.
class JournalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("warpsmith-journal-" + std::to_string(::getpid()) + "-" +
                                           ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::vector<Event> read() const {
    std::vector<Event> events;
    read_journal(folder_, [&](Event&& e) { events.push_back(std::move(e)); });
    return events;
  }
  // Epoch with `count` events, committed in two groups.
  void write_epoch(std::uint32_t count) const {
    Journal journal(folder_, {.text = "host"}, [](Event&&) {});
    for (std::uint32_t i = 0; i < count; ++i) {
      journal.add({.kind = EventKind::kShardStarted, .job = i, .text = "where"});
      if (i == count / 2) journal.commit();
    }
    journal.commit();
  }

  fs::path folder_;
};

TEST_F(JournalTest, MissingFolderHasNoEvents) { EXPECT_TRUE(read().empty()); }

TEST_F(JournalTest, EpochsFollowOneAnother) {
  write_epoch(3);
  write_epoch(2);
  const auto events = read();
  ASSERT_EQ(events.size(), 1u + 3 + 1 + 2);
  EXPECT_EQ(events[0].kind, EventKind::kOpened);
  EXPECT_EQ(events[0].job, 1u);
  EXPECT_EQ(events[4].kind, EventKind::kOpened);
  EXPECT_EQ(events[4].job, 2u);
  EXPECT_EQ(events[4].after, fs::file_size(folder_ / "1.jsonl"));
}

TEST_F(JournalTest, EventsWaitForCommit) {
  Journal journal(folder_, {}, [](Event&&) {});
  const auto before = journal.commits();
  journal.add({.kind = EventKind::kClosed});
  EXPECT_TRUE(journal.pending());
  EXPECT_EQ(read().size(), 1u);
  journal.add({.kind = EventKind::kClosed});
  journal.commit();
  EXPECT_EQ(read().size(), 3u);
  EXPECT_EQ(journal.commits(), before + 1);
  journal.commit();
  EXPECT_EQ(journal.commits(), before + 1) << "nothing was pending";
}

TEST_F(JournalTest, CutAtEveryByteLosesOnlyTheLastLine) {
  write_epoch(6);
  const fs::path file = folder_ / "1.jsonl";
  const std::string whole = read_file(file);
  const auto all = read();
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    write_file_atomic(file, std::string_view(whole).substr(0, size));
    const auto lines =
        static_cast<std::size_t>(std::count(whole.begin(), whole.begin() + static_cast<long>(size), '\n'));
    const auto events = read();
    ASSERT_EQ(events.size(), lines) << "cut at " << size;
    EXPECT_TRUE(std::equal(events.begin(), events.end(), all.begin()));
  }
}

TEST_F(JournalTest, CutAtEveryByteThenGoneOnWith) {
  write_epoch(2);
  const std::string whole = read_file(folder_ / "1.jsonl");
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    fs::remove_all(folder_);
    make_folders(folder_);
    write_file_atomic(folder_ / "1.jsonl", std::string_view(whole).substr(0, size));
    write_epoch(1);
    const auto events = read();
    const auto kept =
        static_cast<std::size_t>(std::count(whole.begin(), whole.begin() + static_cast<long>(size), '\n'));
    ASSERT_EQ(events.size(), kept + 2) << "cut at " << size;
    EXPECT_EQ(events[kept].kind, EventKind::kOpened);
  }
}

// Damage is cut off at the end of the file, or an error with its offset; it never becomes an event.
TEST_F(JournalTest, EveryFlippedBitIsCutOrAnError) {
  write_epoch(3);
  const fs::path file = folder_ / "1.jsonl";
  const std::string whole = read_file(file);
  const auto all = read();
  const std::size_t last_line = whole.rfind('\n', whole.size() - 2) + 1;
  for (std::size_t byte = 0; byte < whole.size(); ++byte)
    for (const int bit : {0, 3, 7}) {
      std::string damaged = whole;
      damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << bit));
      write_file_atomic(file, damaged);
      try {
        const auto events = read();
        EXPECT_LT(events.size(), all.size());
        EXPECT_TRUE(std::equal(events.begin(), events.end(), all.begin()));
        EXPECT_GE(byte + 1, last_line) << "a bad line in the middle went unnoticed";
      } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("1.jsonl: damaged line at byte "), std::string::npos)
            << e.what();
      }
    }
}

TEST_F(JournalTest, MissingLineIsAGap) {
  write_epoch(4);
  const fs::path file = folder_ / "1.jsonl";
  std::string text = read_file(file);
  const std::size_t first = text.find('\n') + 1;
  text.erase(first, text.find('\n', first) + 1 - first);
  write_file_atomic(file, text);
  EXPECT_THROW(read(), Error);
}

// A controller on a lost node still writes; who claimed the next epoch has not read it, so nobody ever does.
TEST_F(JournalTest, WhatAnOldControllerAppendsLaterIsNotTaken) {
  Journal old(folder_, {}, [](Event&&) {});
  EXPECT_FALSE(old.superseded());
  std::size_t replayed = 0;
  Journal fresh(folder_, {}, [&](Event&&) { ++replayed; });
  EXPECT_EQ(replayed, 1u);
  EXPECT_TRUE(old.superseded());
  EXPECT_FALSE(fresh.superseded());
  old.add({.kind = EventKind::kClosed, .text = "late"});
  old.commit();
  fresh.add({.kind = EventKind::kClosed, .text = "new"});
  fresh.commit();
  const auto events = read();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[2].text, "new");
}

TEST_F(JournalTest, EpochClaimedAndLeftEmpty) {
  write_epoch(2);
  ASSERT_TRUE(create_file_exclusive(folder_ / "2.jsonl", ""));
  write_epoch(1);
  EXPECT_EQ(read().size(), 3u + 2u);
  EXPECT_TRUE(fs::exists(folder_ / "3.jsonl"));
}

TEST_F(JournalTest, DeletedFolderIsNoticedAtTheNextCommit) {
  Journal journal(folder_, {}, [](Event&&) {});
  fs::remove_all(folder_);
  journal.add({.kind = EventKind::kClosed});
  EXPECT_THROW(journal.commit(), Error);
  EXPECT_THROW(journal.commit(), Error) << "and stays an error";
}

}  // namespace
}  // namespace warpsmith::run
