// Which items of a shard its records leave open.
#include "open_items.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/controller/job_files.h"

namespace warpsmith::controller {
namespace {

using ::testing::HasSubstr;

class OpenItems : public testing::Test {
 protected:
  // Of an attempt of the shard, which has items 1 to 3 of five.
  void write(int attempt, const std::string& lines) {
    const fs::path folder = scratch_ / std::to_string(attempt);
    fs::create_directories(folder);
    write_file_atomic(folder / "records.jsonl", lines);
  }
  ShardItems shard() const { return {scratch_.path(), ids_, {1, 4}}; }
  bool is_there(int attempt) const {
    return fs::exists(scratch_ / std::to_string(attempt) / "records.jsonl");
  }

  Scratch scratch_;
  std::vector<std::string> ids_ = {"a", "b", "c", "d", "e"};
  std::string problem_;
};

TEST_F(OpenItems, RecordsOfAllAttemptsCountAndOtherItemsDoNot) {
  EXPECT_EQ(count_open_items(shard()), 3u) << "nothing was written yet";
  write(1, "{\"item\":\"b\",\"index\":1}\n{\"item\":\"a\",\"index\":0}\n");
  EXPECT_EQ(count_open_items(shard()), 2u);
  write(2, "{\"item\":\"b\",\"index\":1}\n{\"item\":\"d\"}\n{\"item\":\"c\",\"in");
  EXPECT_EQ(count_open_items(shard()), 1u) << "b once; c's line was cut short";
  EXPECT_EQ(settle_open_items(shard(), problem_), 1u);
  EXPECT_EQ(problem_, "");
  EXPECT_TRUE(is_there(1) && is_there(2));
}

TEST_F(OpenItems, WhatOwesMoreThanItsItemsIsDoneWhenItSaysSo) {
  ShardItems measured = shard();
  measured.has_extras = true;
  write(1, "{\"item\":\"b\"}\n{\"item\":\"c\"}\n{\"extra\":true,\"baseline\":{}}\n");
  EXPECT_EQ(count_open_items(measured), 1u) << "d";
  write(2, "{\"item\":\"d\"}\n");
  EXPECT_EQ(count_open_items(shard()), 0u);
  EXPECT_EQ(count_open_items(measured), 1u) << "baselines may be missing";
  EXPECT_EQ(settle_open_items(measured, problem_), 1u);
  write(3, "{\"end\":3}\n");
  EXPECT_EQ(count_open_items(measured), 0u);
  EXPECT_EQ(problem_, "");
}

TEST_F(OpenItems, ProgressCountsItemsAlone) {
  write(1,
        "{\"asked\":{\"item\":\"b\"},\"extra\":true,\"crc\":\"1\"}\n"
        "{\"index\":1,\"item\":\"b\",\"samples\":[{\"text\":\"{\\\"extra\\\":true}\"}],\"crc\":\"2\"}\n{"
        "\"item\":\"c\",\"in");
  EXPECT_EQ(count_records(scratch_.path()), 1u);
  write(2, "{\"item\":\"c\"}\n{\"end\":2,\"crc\":\"3\"}\n");
  EXPECT_EQ(count_records(scratch_.path()), 2u);
}

// Baselines of a task are rewards' to look at.
TEST_F(OpenItems, WhatAStageIsToldHasTheExtraRecordsOfAllShards) {
  JobFile job;
  job.round = 3;
  job.job = "measure-2";
  job.shards = {{0, 1}, {1, 2}};
  for (const char* shard : {"0", "1"}) {
    const fs::path attempt = scratch_ / shard / "1";
    fs::create_directories(attempt);
    write_file_atomic(attempt / "records.jsonl", std::string("{\"item\":\"") + (*shard == '0' ? "a" : "b") +
                                                     "\"}\n{\"extra\":true,\"baseline\":" + shard + "}\n");
  }
  const stages::JobResult result = read_results(scratch_.path(), scratch_.path(), job, {"a", "b"});
  EXPECT_EQ(result.round, 3);
  EXPECT_EQ(result.job, "measure-2");
  ASSERT_EQ(result.items.size(), 2u);
  EXPECT_EQ(result.items[1].folder, "1/1");
  ASSERT_EQ(result.extras.size(), 2u);
  EXPECT_EQ(result.extras[1]["baseline"], 1);
}

TEST_F(OpenItems, DamagedRecordsAreSetAsideOnceTheShardHasEnded) {
  write(1, "{\"item\":\"b\",\"index\":1}\n");
  write(2, "hello\n{\"item\":\"c\",\"index\":2}\n");
  EXPECT_EQ(count_open_items(shard()), 3u) << "who writes there may be about to mend it";
  EXPECT_TRUE(is_there(2));
  EXPECT_EQ(settle_open_items(shard(), problem_), 2u) << "what the other attempt has still counts";
  EXPECT_THAT(problem_, HasSubstr("2/records.jsonl: bad line at byte 0"));
  EXPECT_FALSE(is_there(2));
  EXPECT_TRUE(is_there(1));
}

TEST_F(OpenItems, ARecordOfAnotherPlaceIsDamage) {
  write(1, "{\"item\":\"b\",\"index\":2}\n");
  EXPECT_EQ(count_open_items(shard()), 3u);
  EXPECT_EQ(settle_open_items(shard(), problem_), 3u);
  EXPECT_THAT(problem_, HasSubstr("the record of b has the index 2, its item 1"));
  EXPECT_FALSE(is_there(1));
}

}  // namespace
}  // namespace warpsmith::controller
