#include "warpsmith/run/usage.h"

#include <gtest/gtest.h>

namespace warpsmith::run {
namespace {

Event stage(const std::string& name, const std::string& hash = "h") {
  return {.kind = EventKind::kStageStarted, .name = name, .hash = hash};
}
Event job(std::uint32_t number, std::uint32_t execution, std::uint32_t items, std::uint32_t shards,
          const std::string& name = "measure") {
  return {.kind = EventKind::kJobAdded,
          .execution = execution,
          .job = number,
          .end = shards,
          .round = 1,
          .open = items,
          .name = name};
}
Event submitted(std::uint32_t number, std::uint32_t begin, std::uint32_t end, std::uint64_t memory = 100) {
  return {.kind = EventKind::kSubmitted,
          .job = number,
          .shard = begin,
          .end = end,
          .submission = 1,
          .cpus = 2,
          .gpus = 1,
          .time_s = 60,
          .memory = memory,
          .text = "L40"};
}
Event started(std::uint32_t number, std::uint32_t shard, const std::string& where) {
  return {.kind = EventKind::kShardStarted, .job = number, .shard = shard, .text = where};
}
Event ended(std::uint32_t number, std::uint32_t shard, std::uint32_t open, double wall_s) {
  return {.kind = EventKind::kShardEnded,
          .job = number,
          .shard = shard,
          .cause = open > 0 ? EndCause::kTimeout : EndCause::kFinished,
          .open = open,
          .wall_s = wall_s,
          .cpu_s = wall_s / 2,
          .memory = 50 + shard};
}

TEST(Attempts, KnowShardsOfUnlikeSizes) {
  Attempts attempts;
  Event unlike = job(0, 0, 46, 3);
  unlike.text = "15,16,15";
  for (const Event& e : {stage("a"), unlike, submitted(0, 0, 3)}) attempts.take(e);
  EXPECT_EQ(attempts.take(ended(0, 0, 0, 10))->items, 15u);
  EXPECT_EQ(attempts.take(ended(0, 1, 2, 10))->items, 14u);
}

TEST(Attempts, AreNumberedAndHaveWhatTheyAskedFor) {
  Attempts attempts;
  // 5 items in two shards: of 3 and of 2.
  for (const Event& e : {stage("a"), job(0, 0, 5, 2), submitted(0, 0, 2), started(0, 0, "here:7")})
    EXPECT_FALSE(attempts.take(e));
  auto one = attempts.take(ended(0, 0, 1, 10));
  ASSERT_TRUE(one);
  EXPECT_EQ(one->number, 1u);
  EXPECT_EQ(one->items, 2u);
  EXPECT_EQ(one->where, "here:7");
  EXPECT_EQ(one->asked,
            (Resources{.cpus = 2, .memory_bytes = 100, .gpus = 1, .gpu_type = "L40", .time_s = 60}));
  EXPECT_FALSE(attempts.take(submitted(0, 0, 1, 150)));
  one = attempts.take(ended(0, 0, 0, 5));
  ASSERT_TRUE(one);
  EXPECT_EQ(one->number, 2u);
  EXPECT_EQ(one->items, 1u);
  EXPECT_EQ(one->asked.memory_bytes, 150u);
  EXPECT_EQ(one->where, "") << "it had not started";
  Event on_node = ended(0, 1, 0, 5);
  on_node.name = "17_1@node";
  one = attempts.take(on_node);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->items, 2u);
  EXPECT_EQ(one->asked.memory_bytes, 100u);
  EXPECT_EQ(one->where, "17_1@node");
}

TEST(Attempts, AnEndThatIsSaidTwiceCountsOnce) {
  Attempts attempts;
  for (const Event& e : {stage("a"), job(0, 0, 4, 2), submitted(0, 0, 1)}) attempts.take(e);
  EXPECT_TRUE(attempts.take(ended(0, 0, 0, 1)));
  EXPECT_FALSE(attempts.take(ended(0, 0, 0, 1)));
  EXPECT_FALSE(attempts.take(ended(0, 1, 0, 1))) << "never submitted";
  EXPECT_FALSE(attempts.take(ended(0, 9, 0, 1))) << "no such shard";
}

TEST(Attempts, AStageThatWasDroppedBeginsAnew) {
  Attempts attempts;
  for (const Event& e : {stage("a"), stage("b"), stage("a"),
                         Event{.kind = EventKind::kStageDropped, .execution = 0}, stage("a")})
    attempts.take(e);
  ASSERT_EQ(attempts.executions().size(), 3u);
  EXPECT_TRUE(attempts.executions()[0].dropped);
  EXPECT_EQ(attempts.executions()[2].stage, "a");
  EXPECT_FALSE(attempts.executions()[2].dropped);
}

TEST(Usage, SumsByJobOverRounds) {
  Usage usage;
  for (const Event& e : {stage("a"), job(0, 0, 4, 2), submitted(0, 0, 2), ended(0, 0, 0, 10),
                         ended(0, 1, 1, 20), submitted(0, 1, 2), ended(0, 1, 0, 0), job(1, 0, 3, 1),
                         submitted(1, 0, 1), ended(1, 0, 0, 6), job(2, 0, 1, 1, "train")})
    usage.take(e);
  const JobUsage& measure = usage.of("a", 0).at("measure");
  EXPECT_EQ(measure.jobs, 2u);
  EXPECT_EQ(measure.shards, 3u);
  EXPECT_EQ(measure.attempts, 4u);
  EXPECT_EQ(measure.items, 7u);
  EXPECT_EQ(measure.timed.attempts, 3u) << "nobody saw how long the second attempt took";
  EXPECT_EQ(measure.timed.items, 6u);
  EXPECT_EQ(measure.timed.wall_s, 36);
  EXPECT_EQ(measure.cpu_s, 18);
  EXPECT_EQ(measure.gpu_s, 36);
  ASSERT_EQ(measure.by_gpu.size(), 1u);
  EXPECT_EQ(measure.by_gpu.at("L40").items, 6u);
  EXPECT_EQ(measure.by_gpu.at("L40").wall_s, 36);
  EXPECT_EQ(measure.peak_memory_bytes, 51u);
  EXPECT_EQ(usage.of("a", 0).at("train").attempts, 0u);
  EXPECT_TRUE(usage.of("a", 1).empty());
  EXPECT_TRUE(usage.of("b", 0).empty());
  EXPECT_EQ(usage.gpu_s(), 36);
  EXPECT_TRUE(usage.unsaid_s().empty());
}

TEST(Usage, AJournalThatDoesNotSayWhatWasAskedIsNotTakenForNoGpu) {
  Usage usage;
  Event silent = submitted(0, 0, 2);
  silent.cpus = silent.gpus = 0;
  for (const Event& e : {stage("a"), job(0, 0, 0, 2), silent, ended(0, 0, 0, 10), ended(0, 1, 0, 5)})
    usage.take(e);
  EXPECT_EQ(usage.gpu_s(), 0);
  EXPECT_EQ(usage.unsaid_s(), (std::map<std::uint32_t, double>{{0, 15}}));
  EXPECT_EQ(usage.of("a", 0).at("measure").items, 0u);
  EXPECT_EQ(usage.expected_item_s("a", 0, "measure", 3, 0), 3);
}

TEST(Usage, ExpectsWhatThisExecutionSawElseWhatTheNewestOtherDid) {
  Usage usage;
  EXPECT_EQ(usage.expected_item_s("a", 0, "measure", 3, 0), 3);
  std::uint32_t jobs = 0;
  const auto see = [&](std::uint32_t execution, double item_s) {
    for (const Event& e : {job(jobs, execution, 1000, 100), submitted(jobs, 0, 100)}) usage.take(e);
    for (std::uint32_t s = 0; s < 100; ++s) usage.take(ended(jobs, s, 0, 10 * item_s));
    ++jobs;
  };
  usage.take(stage("a", "first"));
  see(0, 30);
  EXPECT_NEAR(usage.expected_item_s("a", 0, "measure", 3, 0), 30, 0.1);
  EXPECT_EQ(usage.expected_item_s("a", 0, "compile", 3, 0), 3) << "another job";
  EXPECT_EQ(usage.expected_item_s("b", 1, "measure", 3, 0), 3) << "another stage";
  EXPECT_NEAR(usage.expected_item_s("a", 1, "measure", 3, 0), 30, 0.1)
      << "a new version, which has seen nothing";
  usage.take(stage("a", "second"));
  see(1, 60);
  EXPECT_NEAR(usage.expected_item_s("a", 1, "measure", 3, 0), 60, 0.1);
  EXPECT_NEAR(usage.expected_item_s("a", 2, "measure", 3, 0), 60, 0.1) << "the newest";
  EXPECT_NEAR(usage.expected_item_s("a", 0, "measure", 3, 0), 30, 0.2) << "its own";
  see(1, 3e6);
  EXPECT_LE(usage.expected_item_s("a", 1, "measure", 3, 0), 300 + 1e-9) << "bounded, whoever has seen it";
}

}  // namespace
}  // namespace warpsmith::run
