#include "warpsmith/run/usage.h"

#include <algorithm>
#include <limits>

namespace warpsmith::run {

std::optional<Attempt> Attempts::take(const Event& e) {
  switch (e.kind) {
    case EventKind::kStageStarted: {
      const auto number = static_cast<std::uint32_t>(executions_.size());
      if (by_hash_.try_emplace({e.name, e.hash}, number).second) executions_.push_back({e.name, e.hash});
      return std::nullopt;
    }
    case EventKind::kStageDropped:
      if (e.execution < executions_.size()) {
        Execution& execution = executions_[e.execution];
        execution.dropped = true;
        by_hash_.erase({execution.stage, execution.hash});
      }
      return std::nullopt;
    case EventKind::kJobAdded:
      jobs_.push_back({e.execution, e.round, e.name, e.open, e.end, shards_.size()});
      for (const std::uint64_t size : sizes_told(e.text, e.open, e.end))
        shards_.push_back({.open = static_cast<std::uint32_t>(size)});
      return std::nullopt;
    case EventKind::kSubmitted:
      on_submitted(e);
      return std::nullopt;
    case EventKind::kShardStarted:
      where_[{e.job, e.shard}] = e.text;
      return std::nullopt;
    case EventKind::kShardEnded: {
      if (e.job >= jobs_.size() || e.shard >= jobs_[e.job].shards) return std::nullopt;
      Shard& shard = shards_[jobs_[e.job].first + e.shard];
      if (!std::exchange(shard.in_flight, false)) return std::nullopt;
      Attempt out{.number = shard.attempts,
                  .asked = asked_[shard.asked],
                  .items = shard.open > e.open ? shard.open - e.open : 0,
                  .where = e.name};
      shard.open = e.open;
      if (const auto started = where_.extract({e.job, e.shard}); started && out.where.empty())
        out.where = std::move(started.mapped());
      return out;
    }
    case EventKind::kOpened:
    case EventKind::kStageFinished:
    case EventKind::kStageFailed:
    case EventKind::kServiceUp:
    case EventKind::kClosed:
      break;
  }
  return std::nullopt;
}

void Attempts::on_submitted(const Event& e) {
  if (e.job >= jobs_.size() || e.end > jobs_[e.job].shards) return;
  const std::uint32_t asked = remember({.cpus = e.cpus,
                                        .memory_bytes = e.memory,
                                        .gpus = e.gpus,
                                        .gpu_type = e.text,
                                        .time_s = e.time_s,
                                        .shards_a_gpu = e.shards_a_gpu});
  for (std::uint32_t s = e.shard; s < e.end; ++s) {
    Shard& shard = shards_[jobs_[e.job].first + s];
    shard.asked = asked;
    shard.in_flight = true;
    if (shard.attempts < std::numeric_limits<std::uint16_t>::max()) ++shard.attempts;
  }
}

// A run asks for few different things, and mostly for the same as just before.
std::uint32_t Attempts::remember(Resources asked) {
  const auto found = std::find(asked_.rbegin(), asked_.rend(), asked);
  if (found != asked_.rend()) return static_cast<std::uint32_t>(asked_.rend() - found - 1);
  asked_.push_back(std::move(asked));
  return static_cast<std::uint32_t>(asked_.size() - 1);
}

void Usage::take(const Event& e) {
  const std::optional<Attempt> attempt = attempts_.take(e);
  if (e.kind == EventKind::kJobAdded && e.execution < attempts_.executions().size()) {
    JobUsage& job = stages_[attempts_.executions()[e.execution].stage][e.execution][e.name];
    ++job.jobs;
    job.shards += e.end;
  }
  if (!attempt) return;
  const Attempts::Job& of = attempts_.jobs()[e.job];
  if (of.execution >= attempts_.executions().size()) return;
  JobUsage& job = stages_[attempts_.executions()[of.execution].stage][of.execution][of.name];
  ++job.attempts;
  job.items += attempt->items;
  if (e.wall_s > 0) {
    const Resources& asked = attempt->asked;
    for (TimedItems* timed :
         {&job.timed, asked.gpus > 0 && !asked.gpu_type.empty() ? &job.by_gpu[asked.gpu_type] : nullptr}) {
      if (timed == nullptr) continue;
      ++timed->attempts;
      timed->items += attempt->items;
      timed->wall_s += e.wall_s;
    }
  }
  job.cpu_s += e.cpu_s;
  job.peak_memory_bytes = std::max(job.peak_memory_bytes, e.memory);
  const double gpu_s = e.wall_s * attempt->asked.gpus_held();
  RoundUsage& round = rounds_[of.execution][of.round];
  for (double* sum : {&job.gpu_s, &round.gpu_s, &gpu_s_}) *sum += gpu_s;
  round.ended_ms = std::max(round.ended_ms, e.time_ms);
  if (attempt->asked.cpus == 0 && e.wall_s > 0) unsaid_s_[e.job] += e.wall_s;
}

const std::map<std::string, JobUsage>& Usage::of(const std::string& stage, std::uint32_t execution) const {
  static const std::map<std::string, JobUsage> kNone;
  const auto found = stages_.find(stage);
  if (found == stages_.end()) return kNone;
  const auto one = found->second.find(execution);
  return one == found->second.end() ? kNone : one->second;
}

const std::map<int, RoundUsage>& Usage::rounds(std::uint32_t execution) const {
  static const std::map<int, RoundUsage> kNone;
  const auto found = rounds_.find(execution);
  return found == rounds_.end() ? kNone : found->second;
}

double Usage::expected_item_s(const std::string& stage, std::uint32_t execution, const std::string& job,
                              double guess_s, double start_s) const {
  const auto found = stages_.find(stage);
  if (found == stages_.end()) return guess_s;
  const TimedItems *earlier = nullptr, *own = nullptr;
  for (const auto& [number, jobs] : found->second)
    if (const auto it = jobs.find(job); it != jobs.end() && it->second.timed.items > 0)
      (number == execution ? own : earlier) = &it->second.timed;
  double expected_s = guess_s;
  for (const TimedItems* seen : {earlier, own})
    if (seen != nullptr) expected_s = learnt_item_s(expected_s, *seen, start_s);
  // Each may be wrong by so much, both together as well.
  return guess_s > 0 ? std::clamp(expected_s, guess_s / kMostWrong, guess_s * kMostWrong) : guess_s;
}

}  // namespace warpsmith::run
