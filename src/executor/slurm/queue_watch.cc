#include <algorithm>
#include <limits>
#include <utility>

#include "causes.h"
#include "executor_state.h"

namespace warpsmith::executor {

using std::chrono::seconds;

namespace {

constexpr auto kSlowestStatus = seconds(10);
// A request about many jobs costs slurmctld and us: this many times what it took lie between two, up to the
// longest.
constexpr int kStatuses = 300;
constexpr auto kLongestStatus = seconds(30);
constexpr auto kBetweenAccountLooks = seconds(5);
constexpr std::size_t kNamesAtOnce = 500;     // in one request of accounting
constexpr auto kClocksApart = seconds(3600);  // ours, the file server's and slurmdbd's, at most

}  // namespace

void SlurmExecutor::State::ask_status() {
  const auto asked = Clock::now();
  calls->post([this, asked](Cluster& cluster) -> Calls::Answer {
    try {
      const auto begin = Clock::now();
      auto tasks = std::make_shared<std::vector<SlurmTask>>(cluster.jobs());
      const auto took = Clock::now() - begin;
      return [this, asked, took, tasks, n = cluster.requests()] {
        requests = n;
        answered();
        status_cost = std::min<Clock::duration>(took * kStatuses, kLongestStatus);
        if (!in_a_hurry()) next_status = std::max(next_status, asked + status_cost);
        take_status(*tasks, asked);
      };
    } catch (const SlurmError& e) {
      return [this, e, n = cluster.requests()] {
        requests = n;
        away(e);
        next_status = away_until;
      };
    }
  });
  next_status = asked + (in_a_hurry() ? first_status() : std::max(status_pause, status_cost));
  status_pause = std::max(status_pause, std::min<Clock::duration>(status_pause * 2, kSlowestStatus));
}

bool SlurmExecutor::State::in_a_hurry() const { return ending || any_unsure(); }

bool SlurmExecutor::State::any_unsure() const {
  return std::any_of(waiting.begin(), waiting.end(), [](const Batch& b) { return b.unsure; });
}

std::optional<SlurmExecutor::State::Ours> SlurmExecutor::State::ours(const std::string& name) const {
  const auto dot = name.find('.');
  const std::string token = name.substr(0, dot);
  const auto found = job_of_token.find(token);
  if (found == job_of_token.end()) return std::nullopt;
  return Ours{token, found->second,
              dot == std::string::npos ? 0 : static_cast<std::uint32_t>(std::stoul(name.substr(dot + 1)))};
}

void SlurmExecutor::State::take_status(const std::vector<SlurmTask>& tasks, Clock::time_point asked) {
  std::set<ShardKey> seen;
  status_taken = true;
  strays = 0;
  any_runs = std::any_of(tasks.begin(), tasks.end(), [](const SlurmTask& task) {
    return task.settling || task.state == SlurmState::kRunning || task.state == SlurmState::kSuspended;
  });
  for (const SlurmTask& task : tasks) {
    const std::optional<Ours> found = ours(task.name);
    if (!found) {
      if (!options.prefix.empty() && task.name.starts_with(options.prefix) && !has_ended(task.state))
        leftovers.insert(task.array);
      continue;
    }
    adopt_lost(task, *found);
    for (const std::uint32_t index : task.tasks) {
      const ShardKey key{found->job, found->base + index};
      const auto it = live.find(key);
      if (it == live.end() || it->second.token != found->token) {  // its end was told already …
        if (has_ended(task.state)) continue;
        ++strays;
        // … and Slurm has put it into the queue again: after a requeue, or when slurmctld had lost its end.
        if (task.state == SlurmState::kPending) to_cancel[task.array].insert(index);
        continue;
      }
      if (it->second.array != 0 && it->second.array != task.array) {  // submitted twice after all
        if (!has_ended(task.state)) to_cancel[task.array].insert(index);
        continue;
      }
      seen.insert(key);
      it->second.base = found->base;
      look_at(it->first, it->second, task, index);
    }
  }
  for (Batch& batch : waiting)
    if (batch.unsure && asked > batch.lost_at + second_look()) batch.unsure = false;  // it never arrived
  if (!unwanted.empty()) cancel(std::exchange(unwanted, {}));
  for (auto& [key, shard] : live) {
    if (seen.contains(key) || asked < shard.since || shard.ended_since) continue;
    if (!shard.missing_since) shard.missing_since = asked;
    any_silent = true;
  }
}

void SlurmExecutor::State::adopt_lost(const SlurmTask& task, const Ours& found) {
  for (auto batch = waiting.begin(); batch != waiting.end(); ++batch) {
    if (!batch->unsure || batch->model.token != found.token || batch->base != found.base) continue;
    if (!std::any_of(task.tasks.begin(), task.tasks.end(), [&](std::uint32_t index) {
          return std::binary_search(batch->shards.begin(), batch->shards.end(), found.base + index);
        }))
      continue;
    const Batch arrived = std::move(*batch);
    waiting.erase(batch);
    taken(arrived, task.array);
    return;
  }
}

void SlurmExecutor::State::look_at(const ShardKey& key, Live& shard, const SlurmTask& task,
                                   std::uint32_t index) {
  shard.missing_since.reset();
  // Cancelled before it was known where it is.
  if (shard.array == 0 && shard.cancelling && !has_ended(task.state)) to_cancel[task.array].insert(index);
  const std::uint32_t restarts_before = shard.last.restarts;
  shard.place(task, index);
  if (shard.judged) {
    shard.last = *shard.judged;
    return;
  }
  if (task.restarts > restarts_before) shard.started = false;
  const bool pending = task.state == SlurmState::kPending;
  const bool hopeless = pending && is_hopeless(shard);
  const bool held = pending && failed_to_launch(task.reason);
  if (hopeless || held) {
    to_cancel[task.array].insert(index);
    shard.last.state = hopeless ? SlurmState::kOther : SlurmState::kFailed;
    shard.judged = shard.last;
  }
  if (hopeless || held || (has_ended(task.state) && !task.settling)) {
    if (!shard.ended_since) shard.ended_since = Clock::now();
    any_silent = true;
    return;
  }
  shard.ended_since.reset();  // requeued, perhaps
  if (task.state == SlurmState::kRunning && !shard.started)
    tell_started(key, shard,
                 task.restarts > 0 ? "Slurm started it again (" + std::to_string(task.restarts) + ")" : "");
}

bool SlurmExecutor::State::is_hopeless(Live& shard) const {
  if (never_starts(shard.last.reason)) return true;
  if (any_runs || !waits_for_own_jobs(shard.last.reason)) {
    shard.alone_since.reset();
    return false;
  }
  // The reason may be of the time when some ran: Slurm looks at a pending job once a minute or so.
  if (!shard.alone_since) shard.alone_since = Clock::now();
  return Clock::now() - *shard.alone_since >= to_duration(options.alone_s);
}

void SlurmExecutor::State::ask_accounting() {
  std::vector<std::string> names;
  std::int64_t since = std::numeric_limits<std::int64_t>::max();
  while (!to_account.empty() && names.size() < kNamesAtOnce) {
    names.push_back(to_account.begin()->first);
    since = std::min(since, to_account.begin()->second);
    to_account.erase(to_account.begin());
  }
  calls->post([this, names, since](Cluster& cluster) -> Calls::Answer {
    std::vector<SlurmTask> ended;
    try {
      ended = cluster.ended_jobs(names, since - kClocksApart.count());
      // Where one was submitted twice, the second was cancelled.
      std::stable_sort(ended.begin(), ended.end(), [](const SlurmTask& a, const SlurmTask& b) {
        return std::pair(a.state == SlurmState::kCancelled, -a.submitted) <
               std::pair(b.state == SlurmState::kCancelled, -b.submitted);
      });
    } catch (const SlurmError&) {
    }
    return [this, names, ended, n = cluster.requests()] {
      requests = n;
      for (const std::string& name : names) to_account.erase(name);  // those still missing come back
      next_account = Clock::now() + std::min<Clock::duration>(kBetweenAccountLooks, second_look());
      for (auto& [key, shard] : live)
        if (shard.missing_since && std::binary_search(names.begin(), names.end(), shard.name()))
          ++shard.accounted;
      for (const SlurmTask& task : ended) {
        const std::optional<Ours> found = ours(task.name);
        for (const std::uint32_t index : found ? task.tasks : std::vector<std::uint32_t>{}) {
          const auto it = live.find({found->job, found->base + index});
          if (it == live.end() || it->second.token != found->token || !it->second.missing_since) continue;
          Live& shard = it->second;
          if (shard.array != 0 && shard.array != task.array) continue;
          shard.place(task, index);
          shard.missing_since.reset();
          shard.ended_since = Clock::now();
          any_silent = true;
        }
      }
    };
  });
}

}  // namespace warpsmith::executor
