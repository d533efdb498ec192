// One timing at a time on a host: whoever times holds the lock, everybody else waits.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <optional>

#include "task_folder.h"
#include "warpsmith/measure/host.h"
#include "warpsmith/measure/measurer.h"
#include "warpsmith/records/shard.h"

namespace warpsmith::measure {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class TimingLock : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* asked = std::getenv("WARPSMITH_TIMING_LOCK")) before_ = asked;
    ::setenv("WARPSMITH_TIMING_LOCK", lock_.c_str(), 1);
  }
  void TearDown() override { ::setenv("WARPSMITH_TIMING_LOCK", before_.c_str(), 1); }

  Settings settings() const {
    Settings settings;
    settings.budget_s = 0.2;
    settings.protocol.target = 0.05;
    settings.protocol.variance_gate = 100;
    settings.unsandboxed = true;
    settings.remeasure_above = 1e9;
    return settings;
  }
  Measurement measure(Measurer& measurer) const {
    return measurer.measure(folder_.task(), made_, binary_).measurement;
  }

  // A folder with a job of one candidate.
  std::filesystem::path job(const std::string& run) const {
    const std::filesystem::path folder = scratch_ / run / "stages/s/00000000/0/measure";
    make_folders(folder);
    std::filesystem::copy_file(binary_, scratch_ / run / "c.so");
    write_file_atomic(
        folder / "items.jsonl",
        Json{{"id", made_.id}, {"candidate", to_json(made_)}, {"binary", "c.so"}}.dump() + "\n");
    JobFile job;
    job.shards = {{0, 1}};
    job.params = {{"datasets", folder_.datasets().string()},
                  {"unsandboxed", true},
                  {"budget_s", 0.2},
                  {"target", 0.05},
                  {"variance_gate", 100}};
    write_file_atomic(folder / "job.json", to_json(job).dump());
    return folder;
  }
  // The exit status of `warpsmith-measure`, once it has ended.
  static std::future<int> start(const std::filesystem::path& job, const std::string& lock) {
    const std::string command = "WARPSMITH_TIMING_LOCK='" + lock +
                                "' '" WARPSMITH_BINARY_DIR "/warpsmith-measure' '" +
                                (job / "job.json").string() + "' 0 2>>'" + (job / "log.txt").string() + "'";
    return std::async(std::launch::async, [command] { return std::system(command.c_str()); });
  }
  static void expect_timed(const std::filesystem::path& job) {
    const ShardRecords records = read_shard_records(job / "0");
    EXPECT_TRUE(records.ended);
    ASSERT_EQ(records.records.size(), 1u);
    EXPECT_GT(measurement_from_json(records.records.begin()->second).rounds, 0);
  }

  std::string before_;
  const Scratch scratch_;
  const std::string lock_ = (scratch_ / "lock").string();
  const TaskFolder folder_{"softplus", kSoftplus};
  const Candidate made_ =
      make_plan_candidate("softplus", candidate("out[i] = logf(expf(x[i]) + 1.f) * 2.f;"), {});
  const std::filesystem::path binary_ = folder_.compile(made_);
};

TEST_F(TimingLock, TheFileIsWhereTheEnvironmentSays) {
  EXPECT_EQ(timing_lock_path(), lock_);
  ::setenv("WARPSMITH_TIMING_LOCK", "", 1);
  EXPECT_EQ(timing_lock_path(), "/tmp/warpsmith-timing.lock");
  ::unsetenv("WARPSMITH_TIMING_LOCK");
  EXPECT_EQ(timing_lock_path(), "/tmp/warpsmith-timing.lock");
}

TEST_F(TimingLock, ATimingWaitsUntilTheHostIsFree) {
  Measurer measurer(settings());
  const Clock::time_point begin = Clock::now();
  EXPECT_GT(measure(measurer).rounds, 0);
  const auto alone = Clock::now() - begin;
  std::optional<FileLock> held(timing_lock_path());
  auto timing = std::async(std::launch::async, [&] { return measure(measurer); });
  EXPECT_EQ(timing.wait_for(2 * alone + 500ms), std::future_status::timeout) << "timed beside another timing";
  held.reset();
  EXPECT_GT(timing.get().rounds, 0);
}

TEST_F(TimingLock, AVerdictWithoutATimingDoesNotWait) {
  const FileLock held(timing_lock_path());
  Settings checks = settings();
  checks.timing = false;
  Measurer measurer(checks);
  EXPECT_EQ(measure(measurer).verdict, Verdict::kOk);
}

TEST_F(TimingLock, TwoProgramsAtOnceTakeTurns) {
  std::optional<FileLock> held(timing_lock_path());
  const std::filesystem::path elsewhere = job("elsewhere"), one = job("one"), two = job("two");
  const Clock::time_point begin = Clock::now();
  EXPECT_EQ(start(elsewhere, lock_ + "-another").get(), 0);
  expect_timed(elsewhere);
  const auto alone = Clock::now() - begin;
  std::future<int> first = start(one, lock_), second = start(two, lock_);
  EXPECT_EQ(first.wait_for(2 * alone + 500ms), std::future_status::timeout);
  EXPECT_EQ(second.wait_for(0ms), std::future_status::timeout);
  held.reset();
  EXPECT_EQ(first.get(), 0);
  EXPECT_EQ(second.get(), 0);
  expect_timed(one);
  expect_timed(two);
}

}  // namespace
}  // namespace warpsmith::measure
