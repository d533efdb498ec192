// The engine's cost: shard completions through reactor and journal (group commit and fsync included), and the
// replay of a long journal. CPU is this process's user and system time.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "warpsmith/run/journal.h"
#include "warpsmith/run/reactor.h"

namespace {

using namespace warpsmith;
using Clock = std::chrono::steady_clock;

double cpu_s() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double peak_mb() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

constexpr std::uint32_t kJobs = 1000;

std::vector<run::StageRules> stages() {
  std::vector<run::StageRules> rules;
  for (std::uint32_t i = 0; i < kJobs; ++i) rules.push_back({.name = "stage-" + std::to_string(i)});
  return rules;
}

// One stage a plan of the matrix, one job a stage, `shards` shards a job; `at_once` completions are noticed
// together.
void completions(const fs::path& folder, std::uint32_t shards, std::size_t at_once) {
  fs::remove_all(folder);
  run::Reactor reactor(stages());
  run::Journal journal(folder, {.text = "bench"}, [](run::Event&&) {});
  const double cpu_before = cpu_s();
  const auto wall_before = Clock::now();
  std::uint64_t time_ms = 1'700'000'000'000;
  const auto say = [&](run::Event event) {
    event.time_ms = ++time_ms;
    journal.add(event);
    reactor.apply(event);
  };
  for (std::uint32_t i = 0; i < kJobs; ++i) {
    say({.kind = run::EventKind::kStageStarted,
         .name = "stage-" + std::to_string(i),
         .hash = std::string(64, 'a')});
    say({.kind = run::EventKind::kJobAdded,
         .execution = i,
         .job = i,
         .end = shards,
         .name = "measure",
         .hash = std::string(64, 'b')});
  }
  std::vector<run::ShardKey> flying;
  std::uint64_t done = 0, jobs_done = 0;
  while (done < std::uint64_t{kJobs} * shards) {
    const run::Commands commands = reactor.next(at_once * 2);
    jobs_done += commands.done.size();
    for (const run::ShardRange& r : commands.submit) {
      journal.add({.kind = run::EventKind::kSubmitted,
                   .time_ms = ++time_ms,
                   .job = r.job,
                   .shard = r.begin,
                   .end = r.end});
      for (std::uint32_t s = r.begin; s < r.end; ++s) flying.push_back({r.job, s});
    }
    journal.commit();  // nothing is handed over before it
    for (std::size_t i = 0; i < at_once && !flying.empty(); ++i) {
      const run::ShardKey key = flying.back();
      flying.pop_back();
      journal.add({.kind = run::EventKind::kShardStarted,
                   .time_ms = ++time_ms,
                   .job = key.job,
                   .shard = key.shard,
                   .text = "host 12345"});
      say({.kind = run::EventKind::kShardEnded,
           .job = key.job,
           .shard = key.shard,
           .wall_s = 12.5,
           .cpu_s = 12.25,
           .memory = 1'234'567'890});
      ++done;
    }
  }
  jobs_done += reactor.next(0).done.size();
  journal.commit();
  const double cpu = cpu_s() - cpu_before;
  const double wall = std::chrono::duration<double>(Clock::now() - wall_before).count();
  std::printf(
      "%llu completions in %u jobs, %zu noticed together: %.2f us of CPU each (%.2f s CPU, %.2f s wall), "
      "journal %.1f MB, "
      "%llu fsyncs, %llu jobs done, peak %.0f MB\n",
      static_cast<unsigned long long>(done), kJobs, at_once, cpu * 1e6 / static_cast<double>(done), cpu, wall,
      static_cast<double>(journal.bytes()) / 1e6, static_cast<unsigned long long>(journal.commits()),
      static_cast<unsigned long long>(jobs_done), peak_mb());
}

// Rebuilds the state from a journal of `events` or more.
void replay(const fs::path& folder, std::uint64_t events) {
  fs::remove_all(folder);
  const auto shards = static_cast<std::uint32_t>(events / 2 / kJobs);
  {
    run::Journal journal(folder, {.text = "bench"}, [](run::Event&&) {});
    for (std::uint32_t i = 0; i < kJobs; ++i) {
      journal.add({.kind = run::EventKind::kStageStarted,
                   .time_ms = 1,
                   .name = "stage-" + std::to_string(i),
                   .hash = "h"});
      journal.add({.kind = run::EventKind::kJobAdded,
                   .time_ms = 1,
                   .execution = i,
                   .job = i,
                   .end = shards,
                   .name = "measure"});
      journal.add({.kind = run::EventKind::kSubmitted, .time_ms = 1, .job = i, .end = shards});
      for (std::uint32_t s = 0; s < shards; ++s) {
        journal.add({.kind = run::EventKind::kShardStarted,
                     .time_ms = 1'700'000'000'000,
                     .job = i,
                     .shard = s,
                     .text = "host 12345"});
        journal.add({.kind = run::EventKind::kShardEnded,
                     .time_ms = 1'700'000'000'000,
                     .job = i,
                     .shard = s,
                     .wall_s = 12.5,
                     .cpu_s = 12.25,
                     .memory = 1'234'567'890});
      }
      journal.commit();
    }
  }
  const auto before = Clock::now();
  run::Reactor reactor(stages());
  const run::JournalScan scan = run::read_journal(folder, [&](run::Event&& e) { reactor.apply(e); });
  const double wall = std::chrono::duration<double>(Clock::now() - before).count();
  std::printf("replay of %llu events (%.1f MB): %.2f s, %.2f us each, peak %.0f MB\n",
              static_cast<unsigned long long>(scan.events), static_cast<double>(scan.whole_bytes) / 1e6, wall,
              wall * 1e6 / static_cast<double>(scan.events), peak_mb());
}

}  // namespace

int main() {
  const fs::path folder =
      fs::temp_directory_path() / ("warpsmith-engine-bench-" + std::to_string(::getpid()));
  completions(folder, 100, 500);  // 10,000 a second, at 20 commits a second
  completions(folder, 100, 10);
  completions(folder, 1000, 500);
  replay(folder, 1'000'000);
  fs::remove_all(folder);
}
