// The local executor with real children: /bin/sh scripts as shards.
#include "warpsmith/executor/local.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <csignal>
#include <map>
#include <thread>

#include "evidence.h"
#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"

namespace warpsmith::executor {
namespace {

using run::ShardEvent;
using run::ShardKey;
using run::ShardStart;
using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::chrono_literals;

class Local : public testing::Test {
 protected:
  // Shard number `n` runs `script`; $0 is its folder, $1 the job file, $2 its number.
  ShardStart shard(std::uint32_t n, const std::string& script, Resources resources = {}) {
    ShardStart out;
    out.key = {0, n};
    out.job_file = scratch_ / "job.json";
    out.program = "/bin/sh";
    const fs::path folder = scratch_ / std::to_string(n);
    out.arguments = {"-c", script, folder};
    out.log = folder / "log.txt";
    out.resources = resources;
    return out;
  }

  // Polls until `count` shards have ended (or 20 s), and keeps what happened in order.
  void run_until(run::Executor& executor, std::size_t count) {
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (ended_.size() < count && std::chrono::steady_clock::now() < until)
      for (const ShardEvent& event : executor.poll(100ms)) {
        events_.push_back(event);
        if (event.kind == ShardEvent::Kind::kEnded) ended_[event.key.shard] = event;
      }
    EXPECT_EQ(ended_.size(), count);
  }

  ShardEvent run_one(const std::string& script, Resources resources = {}) {
    LocalExecutor executor({.cpus = 2, .memory_bytes = 1ull << 30});
    executor.submit({shard(0, script, resources)});
    run_until(executor, 1);
    EXPECT_TRUE(executor.poll(0ms).empty());  // nothing else happened
    return ended_[0];
  }

  std::string log(std::uint32_t n) const {
    return read_file(scratch_.path() / std::to_string(n) / "log.txt");
  }

  static bool gone(pid_t pid) {
    for (int i = 0; i < 200; ++i) {
      try {
        const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
        if (stat.substr(stat.rfind(')')).starts_with(") Z")) return true;
      } catch (const Error&) {
        return true;
      }
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }

  static pid_t read_pid(const fs::path& file) {
    for (int i = 0; i < 500; ++i) {
      if (fs::exists(file))
        if (const std::string text = read_file(file); text.ends_with("\n")) return std::stoi(text);
      std::this_thread::sleep_for(10ms);
    }
    ADD_FAILURE() << file << " did not come";
    return -1;
  }

  Scratch scratch_;
  std::vector<ShardEvent> events_;
  std::map<std::uint32_t, ShardEvent> ended_;
};

TEST_F(Local, StartsAndEndsAndLogs) {
  const ShardEvent end = run_one("echo out; echo err >&2; echo \"$1 $2\"");
  ASSERT_EQ(events_.size(), 2u);
  EXPECT_EQ(events_[0].kind, ShardEvent::Kind::kStarted);
  EXPECT_THAT(events_[0].where, testing::MatchesRegex(".+:[0-9]+"));
  EXPECT_EQ(end.cause, EndCause::kFinished);
  EXPECT_GT(end.wall_s, 0);
  EXPECT_EQ(log(0), "out\nerr\n" + (scratch_ / "job.json").string() + " 0\n");
}

TEST_F(Local, TheLogIsAppendedTo) {
  run_one("echo one");
  ended_.clear();
  run_one("echo two");
  EXPECT_EQ(log(0), "one\ntwo\n");
}

TEST_F(Local, EachEndHasItsCause) {
  struct Row {
    const char* script;
    EndCause cause;
    int exit_code, signal;
  };
  const Row rows[] = {
      {"exit 0", EndCause::kFinished, 0, 0},           {"exit 1", EndCause::kFailed, 1, 0},
      {"exit 2", EndCause::kUserError, 2, 0},          {"exit 3", EndCause::kFailed, 3, 0},
      {"exit 77", EndCause::kFailed, 77, 0},           {"kill -SEGV $$", EndCause::kCrash, 0, SIGSEGV},
      {"kill -KILL $$", EndCause::kCrash, 0, SIGKILL},
  };
  LocalExecutor executor({.cpus = 2});
  std::uint32_t n = 0;
  for (const Row& row : rows) executor.submit({shard(n++, row.script)});
  run_until(executor, std::size(rows));
  for (n = 0; n < std::size(rows); ++n) {
    EXPECT_EQ(ended_[n].cause, rows[n].cause) << rows[n].script << ": " << to_string(ended_[n].cause);
    EXPECT_EQ(ended_[n].exit_code, rows[n].exit_code) << rows[n].script;
    EXPECT_EQ(ended_[n].signal, rows[n].signal) << rows[n].script;
  }
}

TEST_F(Local, WhatAProgramLacksToStartIsTold) {
  const ShardEvent end = run_one("echo warpsmith-x: there is no torch >&2; exit 127");
  EXPECT_EQ(end.cause, EndCause::kFailed);
  EXPECT_EQ(end.detail, "warpsmith-x: there is no torch");
}

TEST_F(Local, AProgramThatIsNotThereIsALaunchFailure) {
  LocalExecutor executor({.cpus = 1});
  ShardStart lost = shard(0, "");
  lost.program = "/nowhere/warpsmith-measure";
  executor.submit({lost, shard(1, "true")});
  run_until(executor, 2);
  EXPECT_EQ(ended_[0].cause, EndCause::kLaunchFailure);
  EXPECT_THAT(ended_[0].detail, HasSubstr("/nowhere/warpsmith-measure"));
  EXPECT_EQ(ended_[1].cause, EndCause::kFinished);
}

TEST_F(Local, TimeLimit) {
  const ShardEvent end = run_one("sleep 100", {.time_s = 0.3});
  EXPECT_EQ(end.cause, EndCause::kTimeout);
  EXPECT_THAT(end.detail, HasSubstr("300ms"));
  EXPECT_LT(end.wall_s, 3);
}

// 80 MB in each of two processes.
constexpr char kTwoLargeProcesses[] =
    "f() { x=$(head -c 80000000 /dev/zero | tr '\\0' x); sleep 20; }; f & f; wait";

TEST_F(Local, MemoryLimitOfTheWholeTree) {
  const ShardEvent end = run_one(kTwoLargeProcesses, {.memory_bytes = 120'000'000});
  EXPECT_EQ(end.cause, EndCause::kOutOfMemory);
  EXPECT_THAT(end.detail, HasSubstr("114.4 MiB"));
  EXPECT_GT(end.peak_memory_bytes, 120'000'000u);
}

TEST_F(Local, OutputLimitCountsWhatTheAttemptWrites) {
  make_folders(scratch_ / "0");
  write_file_atomic(scratch_ / "0" / "earlier", std::string(3 << 20, 'x'));
  EXPECT_EQ(run_one("head -c 1000000 /dev/zero > $0/now; sleep 1", {.output_bytes = 2 << 20}).cause,
            EndCause::kFinished);
  ended_.clear();
  const ShardEvent end =
      run_one("mkdir $0/1; while :; do head -c 100000 /dev/zero >> $0/1/big; sleep 0.01; done",
              {.output_bytes = 2 << 20});
  EXPECT_EQ(end.cause, EndCause::kFailed);
  EXPECT_THAT(end.detail, HasSubstr("2.0 MiB"));
}

TEST_F(Local, FullDisk) {
  const fs::path small = scratch_ / "0";
  make_folders(small);
  if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=2m") != 0)
    GTEST_SKIP() << "cannot mount a small file system here";
  const ShardEvent ours = run_one("head -c 10000000 /dev/zero > $0/big; exit 3");
  ended_.clear();
  const ShardEvent other = run_one("head -c 10000000 /dev/zero > $0/big; exit 1");
  ::umount2(small.c_str(), MNT_DETACH);
  EXPECT_EQ(ours.cause, EndCause::kDiskFull);
  EXPECT_EQ(other.cause, EndCause::kDiskFull) << "a program that does not know our exit codes";
}

TEST_F(Local, NeverMoreAtOnceThanThereAreCpus) {
  LocalExecutor executor({.cpus = 3});
  std::vector<ShardStart> shards;
  for (std::uint32_t n = 0; n < 8; ++n) shards.push_back(shard(n, "sleep 0.1", {.cpus = n % 2 == 0 ? 2 : 1}));
  executor.submit(shards);
  run_until(executor, 8);
  int busy = 0, most = 0;
  std::vector<std::uint32_t> order;
  for (const ShardEvent& event : events_) {
    const int cpus = event.key.shard % 2 == 0 ? 2 : 1;
    busy += event.kind == ShardEvent::Kind::kStarted ? cpus : -cpus;
    if (event.kind == ShardEvent::Kind::kStarted) order.push_back(event.key.shard);
    most = std::max(most, busy);
  }
  EXPECT_EQ(most, 3);
  EXPECT_EQ(busy, 0);
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST_F(Local, NeverMoreMemoryThanThereIs) {
  LocalExecutor executor({.cpus = 8, .memory_bytes = 1000 << 20});
  executor.submit(
      {shard(0, "sleep 0.3", {.memory_bytes = 600 << 20}), shard(1, "true", {.memory_bytes = 600 << 20})});
  run_until(executor, 2);
  EXPECT_EQ(events_[1].kind, ShardEvent::Kind::kEnded);  // 0 started, 0 ended, then 1
  EXPECT_EQ(events_[1].key.shard, 0u);
}

TEST_F(Local, MoreThanTheMachineHasRunsAloneWithAWarning) {
  LocalExecutor executor({.cpus = 2});
  executor.submit(
      {shard(0, "sleep 0.2"), shard(1, "echo $OMP_NUM_THREADS; sleep 0.2", {.cpus = 64}), shard(2, "true")});
  run_until(executor, 3);
  std::vector<std::string> order;
  for (const ShardEvent& event : events_)
    order.push_back((event.kind == ShardEvent::Kind::kStarted ? "start " : "end ") +
                    std::to_string(event.key.shard));
  EXPECT_THAT(order, ElementsAre("start 0", "end 0", "start 1", "end 1", "start 2", "end 2"));
  EXPECT_THAT(events_[2].detail, HasSubstr("wants 64 CPUs, there are 2: runs alone"));
  EXPECT_EQ(log(1), "2\n");
}

TEST_F(Local, ThreadsAndGpusInTheEnvironment) {
  LocalExecutor executor({.cpus = 4, .gpus = {{"GPU-a"}, {"GPU-b"}, {"GPU-c"}}});
  const std::string print =
      "echo $OMP_NUM_THREADS $MKL_NUM_THREADS $OMP_WAIT_POLICY $GOMP_SPINCOUNT [$CUDA_VISIBLE_DEVICES]; "
      "sleep 0.3";
  executor.submit(
      {shard(0, print, {.cpus = 1, .gpus = 1}), shard(1, print, {.cpus = 2, .gpus = 2}), shard(2, print)});
  run_until(executor, 3);
  EXPECT_EQ(log(0), "1 1 passive 10000 [GPU-a]\n");
  EXPECT_EQ(log(1), "2 2 passive 10000 [GPU-b,GPU-c]\n");
  EXPECT_EQ(log(2), "1 1 passive 10000 []\n");
}

TEST_F(Local, GpusAreGivenBackAndMissingOnesRefused) {
  LocalExecutor executor({.cpus = 4, .gpus = {{"GPU-a"}}});
  executor.submit({shard(0, "sleep 0.1", {.gpus = 1}), shard(1, "echo $CUDA_VISIBLE_DEVICES", {.gpus = 1}),
                   shard(2, "true", {.gpus = 2})});
  run_until(executor, 3);
  EXPECT_EQ(log(1), "GPU-a\n");
  EXPECT_EQ(ended_[2].cause, EndCause::kUserError);
  EXPECT_THAT(ended_[2].detail, HasSubstr("wants 2 GPUs, this machine has 1"));
}

TEST_F(Local, AShardGetsGpusOfItsTypeAlone) {
  LocalExecutor executor({.cpus = 4, .gpus = {{"GPU-a", "L40"}, {"GPU-b", "H100"}, {"GPU-c", "L40"}}});
  const std::string print = "echo $CUDA_VISIBLE_DEVICES; sleep 0.2";
  executor.submit(
      {shard(0, print, {.gpus = 1, .gpu_type = "H100"}), shard(1, print, {.gpus = 2, .gpu_type = "L40"}),
       shard(2, print, {.gpus = 2, .gpu_type = "H100"}), shard(3, print, {.gpus = 1, .gpu_type = "H200"})});
  EXPECT_EQ(executor.view().gpus, (std::map<std::string, std::size_t>{{"H100", 1}, {"L40", 2}}));
  run_until(executor, 4);
  EXPECT_EQ(log(0), "GPU-b\n");
  EXPECT_EQ(log(1), "GPU-a,GPU-c\n");
  EXPECT_EQ(ended_[2].cause, EndCause::kUserError);
  EXPECT_EQ(ended_[2].detail, "wants 2 GPUs of type H100, this machine has 1 H100, 2 L40");
  EXPECT_EQ(ended_[3].cause, EndCause::kUserError);
  EXPECT_EQ(ended_[3].detail, "wants 1 GPU of type H200, this machine has 1 H100, 2 L40");
  EXPECT_THAT(executor.view().gpus, testing::IsEmpty());
}

TEST_F(Local, WhoWaitsForAGpuHoldsThoseAloneThatWantOneToo) {
  LocalExecutor executor({.cpus = 4, .gpus = {{"GPU-a", "L40"}, {"GPU-b", "H100"}}});
  const Resources l40{.gpus = 1, .gpu_type = "L40"}, h100{.gpus = 1, .gpu_type = "H100"};
  executor.submit({shard(0, "sleep 0.5", l40), shard(1, "true", l40), shard(2, "true"),
                   shard(3, "true", h100), shard(4, "true", {.gpus = 1}), shard(5, "true", h100)});
  run_until(executor, 6);
  std::vector<std::string> order;
  for (const ShardEvent& event : events_)
    if (event.kind == ShardEvent::Kind::kStarted) order.push_back(std::to_string(event.key.shard));
  // 4 would take either: it waits behind 1, and 5 behind it.
  EXPECT_THAT(order, ElementsAre("0", "2", "3", "1", "4", "5"));
}

// Many short shards with GPUs: at no time has one what another has.
TEST_F(Local, NoGpuHasTwoShardsAtATime) {
  LocalExecutor executor({.cpus = 8, .gpus = {{"GPU-a", "L40"}, {"GPU-b", "L40"}}});
  const std::string each = "for g in $(echo $CUDA_VISIBLE_DEVICES | tr , ' '); do ",
                    lock = (scratch_ / "lock-").string() + "$g || exit 1; done; ",
                    alone = each + "mkdir " + lock + "sleep 0.01; " + each + "rmdir " + lock + "exit 0";
  std::vector<ShardStart> all;
  for (std::uint32_t n = 0; n < 40; ++n)
    all.push_back(shard(n, alone, {.gpus = n % 5 == 0 ? 2 : 1, .gpu_type = n % 3 == 0 ? "" : "L40"}));
  executor.submit(all);
  run_until(executor, 40);
  for (const auto& [n, end] : ended_) EXPECT_EQ(end.cause, EndCause::kFinished) << n << ": " << log(n);
}

// They are spread over the GPUs; who wants one for itself waits until nobody has it.
TEST_F(Local, ShardsShareAGpuWhereAllOfThemMay) {
  LocalExecutor executor({.cpus = 16, .gpus = {{"GPU-a", "L40"}, {"GPU-b", "L40"}}});
  const Resources shared{.gpus = 1, .shards_a_gpu = 2}, own{.gpus = 1};
  const std::string print = "echo $CUDA_VISIBLE_DEVICES; sleep 0.3";
  executor.submit({shard(0, print, shared), shard(1, print, shared), shard(2, print, shared),
                   shard(3, print, shared), shard(4, print, own), shard(5, print, shared)});
  run_until(executor, 6);
  std::vector<std::string> order;
  for (const ShardEvent& event : events_)
    order.push_back((event.kind == ShardEvent::Kind::kStarted ? "+" : "-") + std::to_string(event.key.shard));
  order.resize(4);
  EXPECT_THAT(order, ElementsAre("+0", "+1", "+2", "+3"));
  EXPECT_EQ(log(0) + log(1) + log(2) + log(3), "GPU-a\nGPU-b\nGPU-a\nGPU-b\n");
  const auto at = [&](ShardEvent::Kind kind, std::uint32_t n) {
    return std::find_if(events_.begin(), events_.end(),
                        [&](const ShardEvent& e) { return e.kind == kind && e.key.shard == n; });
  };
  const std::uint32_t before = log(4) == "GPU-a\n" ? 0 : 1;  // it and two more had that GPU
  for (const std::uint32_t n : {before, before + 2})
    EXPECT_LT(at(ShardEvent::Kind::kEnded, n), at(ShardEvent::Kind::kStarted, 4));
}

// What a job program says that finds itself on another GPU than it was told to expect.
TEST_F(Local, AWrongGpuIsAFailedLaunchWithItsReason) {
  LocalExecutor executor({.cpus = 2, .gpus = {{"GPU-a", "H100"}}});
  const std::string wrong =
      "echo measuring; echo '04:35:04.099 warpsmith-measure error wrong GPU: NVIDIA L40 is no "
      "H100' >&2; exit 5";
  executor.submit({shard(0, wrong, {.gpus = 1, .gpu_type = "H100"}), shard(1, wrong)});
  run_until(executor, 2);
  EXPECT_EQ(ended_[0].cause, EndCause::kLaunchFailure);
  EXPECT_EQ(ended_[0].exit_code, kExitWrongDevice);
  EXPECT_EQ(ended_[0].detail, "wrong GPU: NVIDIA L40 is no H100");
  EXPECT_EQ(ended_[1].cause, EndCause::kFailed) << "without a GPU it means nothing";
}

TEST_F(Local, AMistakeInTheInputIsToldAsTheProgramToldIt) {
  EXPECT_EQ(run_one("printf 'begin\\nno task \\377x\\n\\n' >&2; exit 2").detail, "no task \xEF\xBF\xBDx");
  EXPECT_EQ(ended_[0].cause, EndCause::kUserError);
}

TEST_F(Local, AGangIsRefused) { EXPECT_EQ(run_one("true", {.ranks = 2}).cause, EndCause::kUserError); }

TEST_F(Local, CancelEndsWaitingAndRunningShards) {
  LocalExecutor executor({.cpus = 2, .grace_s = 0.3});
  executor.submit({shard(0, "sleep 100"),
                   shard(1, "trap '' TERM; echo $$ > $0/pid; while :; do sleep 1; done"), shard(2, "true"),
                   shard(3, "true")});
  const pid_t stubborn = read_pid(scratch_ / "1" / "pid");
  executor.cancel({{0, 0}, {0, 1}, {0, 2}, {7, 7}});
  run_until(executor, 4);
  EXPECT_EQ(ended_[0].cause, EndCause::kCancelled);
  EXPECT_EQ(ended_[1].cause, EndCause::kCancelled);
  EXPECT_EQ(ended_[2].cause, EndCause::kCancelled);
  EXPECT_EQ(ended_[3].cause, EndCause::kFinished);
  EXPECT_TRUE(gone(stubborn));
}

TEST_F(Local, ACancelledShardThatEndsWellHasFinished) {
  LocalExecutor executor({.cpus = 1});
  executor.submit({shard(0, "trap 'exit 0' TERM; touch $0/ready; while :; do sleep 0.05; done")});
  while (!fs::exists(scratch_ / "0" / "ready")) std::this_thread::sleep_for(10ms);
  executor.cancel({{0, 0}});
  run_until(executor, 1);
  EXPECT_EQ(ended_[0].cause, EndCause::kFinished);
}

TEST_F(Local, WhatCalledSetsidEndsWithItsShard) {
  run_one("setsid sh -c 'echo $$ > '$0'/pid; exec sleep 1000' & while [ ! -s $0/pid ]; do sleep 0.01; done");
  EXPECT_EQ(ended_[0].cause, EndCause::kFinished);
  EXPECT_TRUE(gone(read_pid(scratch_ / "0" / "pid")));
}

TEST_F(Local, ShutDownLeavesNothing) {
  LocalExecutor executor({.cpus = 1, .grace_s = 0.2});
  executor.submit(
      {shard(0, "setsid sh -c 'trap \"\" TERM; echo $$ > '$0'/pid; while :; do sleep 1; done' & sleep 100"),
       shard(1, "touch $0/started")});
  const pid_t pid = read_pid(scratch_ / "0" / "pid");
  executor.shut_down();
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_FALSE(fs::exists(scratch_ / "1" / "started"));
}

TEST_F(Local, EverythingEndsWhenTheControllerIsKilled) {
  const pid_t controller = ::fork();
  if (controller == 0) {
    LocalExecutor executor({.cpus = 2});
    const char* script =
        "echo $$ > $0/plain; setsid sh -c 'echo $$ > '$0'/escaped; exec sleep 1000' & sleep 100";
    executor.submit({shard(0, script), shard(1, script)});
    for (;;) executor.poll(100ms);
  }
  std::vector<pid_t> pids;
  for (const char* n : {"0", "1"})
    for (const char* file : {"plain", "escaped"}) pids.push_back(read_pid(scratch_ / n / file));
  ::kill(controller, SIGKILL);
  ::waitpid(controller, nullptr, 0);
  const auto killed = std::chrono::steady_clock::now();
  for (const pid_t pid : pids) EXPECT_TRUE(gone(pid));
  EXPECT_LT(std::chrono::steady_clock::now() - killed, 2s);
}

TEST_F(Local, AKilledGuardIsACrashAndLeavesNothing) {
  // In a process of its own: a subreaper takes every child that it does not know for a stray.
  const pid_t controller = ::fork();
  if (controller == 0) {
    LocalExecutor executor({.cpus = 1});
    executor.submit({shard(
        0, "echo $PPID > $0/guard; setsid sh -c 'echo $$ > '$0'/escaped; exec sleep 1000' & sleep 100")});
    run_until(executor, 1);
    ::_exit(ended_[0].cause == EndCause::kCrash ? 0 : 1);
  }
  const pid_t escaped = read_pid(scratch_ / "0" / "escaped");
  ::kill(read_pid(scratch_ / "0" / "guard"), SIGKILL);
  EXPECT_TRUE(gone(escaped));
  int status = 0;
  ::waitpid(controller, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Evidence, BytesBelowAFolder) {
  const Scratch scratch;
  make_folders(scratch / "a/b");
  write_file_atomic(scratch / "a/b/c", "12345");
  write_file_atomic(scratch / "d", "678");
  EXPECT_EQ(bytes_below(scratch.path()), 8u);
  EXPECT_EQ(bytes_below(scratch / "nowhere"), 0u);
}

TEST(Evidence, DiskIsFull) {
  EXPECT_FALSE(disk_is_full("/nowhere"));
  EXPECT_FALSE(disk_is_full(fs::temp_directory_path()));
}

}  // namespace
}  // namespace warpsmith::executor
