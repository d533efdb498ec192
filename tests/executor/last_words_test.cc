// The file of last words: whole lines only, each once, whatever a full disk left between them.
#include "warpsmith/executor/last_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "../scratch.h"
#include "warpsmith/base/files.h"

namespace warpsmith::executor {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class LastWordsTest : public ::testing::Test {
 protected:
  void append(const std::string& node, const std::string& token, std::uint32_t shard) {
    append_last_word(ends_, node, {token, shard, {{"cause", "finished"}, {"wall_s", shard * 0.5}}});
  }
  void append_raw(const std::string& node, const std::string& text) {
    std::ofstream(ends_ / (node + ".jsonl"), std::ios::app) << text;
  }

  Scratch scratch_;
  const fs::path ends_ = [&] {
    const fs::path ends = ends_folder(scratch_ / "job.json");
    make_folders(ends);
    return ends;
  }();
};

TEST_F(LastWordsTest, EachIsReadOnce) {
  LastWords words(ends_);
  EXPECT_THAT(words.read_new(), IsEmpty());
  append("n1", "t-1", 3);
  append("n2", "t-1", 4);
  const auto first = words.read_new();
  ASSERT_THAT(first, SizeIs(2));
  EXPECT_EQ(first[0].token, "t-1");
  EXPECT_EQ(first[0].shard, 3u);
  EXPECT_EQ(first[0].told.value("wall_s", 0.0), 1.5);
  EXPECT_THAT(words.read_new(), IsEmpty());
  append("n1", "t-1", 5);
  EXPECT_THAT(words.read_new(true), SizeIs(1));
  EXPECT_THAT(words.read_new(true), IsEmpty());
}

TEST_F(LastWordsTest, HalfALineWaitsForItsRest) {
  LastWords words(ends_);
  append_raw("n1", "\n{\"word\":\"t-1.7\",\"cause\":");
  EXPECT_THAT(words.read_new(), IsEmpty());
  append_raw("n1", "\"failed\"}\n");
  const auto whole = words.read_new();
  ASSERT_THAT(whole, SizeIs(1));
  EXPECT_EQ(whole[0].shard, 7u);
}

TEST_F(LastWordsTest, WhatAFullDiskCutOffSpoilsNoOther) {
  LastWords words(ends_);
  append("n1", "t-1", 1);
  append_raw("n1", "\n{\"word\":\"t-1.2\",\"cau");
  append("n1", "t-1", 3);
  const auto found = words.read_new();
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[1].shard, 3u);
  EXPECT_TRUE(find_last_word(ends_, "t-1", 2).is_null());
  EXPECT_FALSE(find_last_word(ends_, "t-1", 3).is_null());
}

TEST_F(LastWordsTest, FindsOneByTokenAndShard) {
  append("n1", "t-1", 1);
  append("n2", "t-2", 11);
  EXPECT_TRUE(find_last_word(ends_, "t-1", 11).is_null());
  EXPECT_EQ(find_last_word(ends_, "t-2", 11).value("wall_s", 0.0), 5.5);
  EXPECT_TRUE(find_last_word(scratch_ / "nowhere", "t-2", 11).is_null());
}

// As a network file system has them whose server is away: it is opened, and reading it fails.
TEST_F(LastWordsTest, AFileThatCannotBeReadHidesNoOther) {
  fs::create_directories(ends_ / "n0.jsonl");
  append("n1", "t-1", 1);
  EXPECT_FALSE(find_last_word(ends_, "t-1", 1).is_null());
  LastWords words(ends_);
  EXPECT_THAT(words.read_new(true), SizeIs(1));
  EXPECT_THAT(words.read_new(), SizeIs(0));
}

TEST_F(LastWordsTest, ProcessesOfANodeWriteSideBySide) {
  constexpr std::uint32_t kEach = 200;
  std::vector<std::thread> writers;
  for (std::uint32_t w = 0; w < 4; ++w)
    writers.emplace_back([&, w] {
      for (std::uint32_t i = 0; i < kEach; ++i) append("n1", "t-" + std::to_string(w), i);
    });
  LastWords words(ends_);
  std::size_t seen = 0;
  for (int looks = 0; looks < 20; ++looks) seen += words.read_new().size();
  for (std::thread& t : writers) t.join();
  seen += words.read_new().size();
  EXPECT_EQ(seen, 4 * kEach);
}

}  // namespace
}  // namespace warpsmith::executor
