#include "warpsmith/controller/replay.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/records/job.h"
#include "warpsmith/records/shard.h"

namespace warpsmith::controller {
namespace {

class ReplayTest : public ::testing::Test {
 protected:
  void SetUp() override {
    run_ = fs::temp_directory_path() / ("warpsmith-replay-" + std::to_string(::getpid()));
    fs::remove_all(run_);
  }
  void TearDown() override { fs::remove_all(run_); }
  void write(const std::string& stage, const std::string& job, const std::string& program,
             const std::vector<Json>& records) const {
    const fs::path folder = run_ / "stages" / stage / "12345678" / "0" / job;
    make_folders(folder / "0" / "1");
    JobFile file;
    file.program = program;
    file.shards = {{0, records.size()}};
    write_file_atomic(folder / "job.json", to_json(file).dump());
    AppendFile lines(folder / "0" / "1" / "records.jsonl");
    for (const Json& record : records) lines.append(record.dump() + "\n");
  }
  fs::path run_;
};

TEST_F(ReplayTest, TakesTheRecordOfTheSameStageFirst) {
  write("a", "measure", "warpsmith-measure",
        {{{"item", "c1"},
          {"index", 0},
          {"verdict", "ok"},
          {"speedup", 2.0},
          {"samples", {{"file", "blob.bin"}}}}});
  write("b", "measure", "warpsmith-measure",
        {{{"item", "c1"}, {"index", 4}, {"verdict", "ok"}, {"speedup", 3.0}}});
  write("b", "compile", "warpsmith-compile", {{{"item", "c2"}, {"index", 0}, {"verdict", "ok"}}});
  const ReplayTimings replay(run_);
  EXPECT_EQ(replay.size(), 1u) << "compilations are no timings";
  EXPECT_EQ(replay.find("b", "c1")->at("speedup"), 3.0);
  EXPECT_EQ(replay.find("a", "c1")->at("speedup"), 2.0);
  EXPECT_EQ(replay.find("elsewhere", "c1")->at("speedup"), 2.0) << "the first stage by name";
  EXPECT_EQ(replay.find("b", "c2"), nullptr);
  EXPECT_FALSE(replay.find("a", "c1")->contains("samples")) << "its samples lie in the other run";
  EXPECT_FALSE(replay.find("a", "c1")->contains("index"));
}

TEST_F(ReplayTest, RunWithoutMeasurementsIsAMistake) {
  make_folders(run_);
  try {
    const ReplayTimings replay(run_);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), kExitUsage);
  }
}

TEST_F(ReplayTest, WhatTheClockSaidOfAnUnknownCandidateIsMadeEqual) {
  for (const char* verdict : {"ok", "unstable", "too_fast"}) {
    const Json record = ReplayTimings::without_clock(
        {{"verdict", verdict}, {"speedup", 1.7}, {"speedup_rounded", 1.7}, {"imprecise", true}});
    EXPECT_EQ(record.at("verdict"), "ok");
    EXPECT_EQ(record.at("speedup"), 1.0);
    EXPECT_EQ(record.at("speedup_rounded"), 1.0);
    EXPECT_EQ(record.at("imprecise"), false);
  }
  const Json wrong = {{"verdict", "wrong_output"}, {"detail", "out[3]"}};
  EXPECT_EQ(ReplayTimings::without_clock(wrong), wrong);
}

}  // namespace
}  // namespace warpsmith::controller
