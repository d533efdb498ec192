#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <tuple>
#include <utility>

#include "executor_state.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/random.h"
#include "warpsmith/executor/batch.h"

namespace warpsmith::executor {

using std::chrono::seconds;

namespace {

constexpr std::size_t kQueuedByDefault = 10'000;
constexpr std::uint64_t kOwnMemory = 64ull << 20;  // of warpsmith-shard and its guard

}  // namespace

SlurmExecutor::State::State(std::unique_ptr<Cluster> cluster, SlurmOptions given)
    : options(std::move(given)),
      facts(cluster->facts()),
      bucket(options.site.requests_per_minute, options.site.request_burst, Clock::now()) {
  limit = options.site.max_queued > 0 ? options.site.max_queued : kQueuedByDefault;
  if (facts.max_jobs > 0) limit = std::min<std::size_t>(limit, facts.max_jobs);
  try {
    if (const auto limits = cluster->limits(); limits && limits->max_submit > 0)
      limit = std::min<std::size_t>(limit, limits->max_submit);
  } catch (const SlurmError&) {  // accounting is not needed
  }
  lower_array_limits(facts);
  calls.emplace(std::move(cluster));
}

const workflow::SitePlace* SlurmExecutor::State::place_of(const ShardStart& start) const {
  const workflow::SitePlace* place = workflow::place_for(options.site, start.resources);
  const auto& types = options.site.gpus;
  if (place != nullptr || !start.resources.gpu_type.empty() || types.empty()) return place;
  if (!std::all_of(types.begin(), types.end(), [](const auto& type) { return type.second.twin; }))
    return nullptr;
  // In turn; from one job to the next by chance, as each may be one shard and the fourth of a round.
  const std::size_t turn = (random_key({start.key.job}) + start.key.shard) % types.size();
  return &std::next(types.begin(), static_cast<std::ptrdiff_t>(turn))->second;
}

std::uint32_t SlurmExecutor::State::base_of(std::uint32_t shard) const {
  return shard / array_size * array_size;
}

void SlurmExecutor::State::lower_array_limits(const SlurmFacts& now) {
  array_size = std::min(array_size, std::max<std::uint32_t>(now.max_array_size, 1));
  most_tasks = std::min<std::size_t>(most_tasks, array_size);
  if (now.max_array_tasks > 0) most_tasks = std::min<std::size_t>(most_tasks, now.max_array_tasks);
}

bool SlurmExecutor::State::make_arrays_smaller(const Batch& batch, const std::optional<SlurmFacts>& now) {
  const std::size_t size = batch.shards.size();
  const std::uint32_t last = batch.shards.back() - batch.base;
  if (now) lower_array_limits(*now);
  if (size > most_tasks || last >= array_size) return true;
  // Slurm's limits do not explain it, or cannot be read: halve the array, then the indices.
  if (size > 1)
    most_tasks = size / 2;
  else if (last > 0)
    array_size = (last + 1) / 2;
  return size > 1 || last > 0;
}

void SlurmExecutor::State::enqueue(const std::vector<ShardStart>& given) {
  // One array a token and place: those of a place side by side.
  std::vector<std::tuple<std::size_t, const workflow::SitePlace*, std::size_t>> order;  // range, place, shard
  for (std::size_t i = 0; i < given.size(); ++i) {
    const bool same = i > 0 && given[i].token == given[i - 1].token;
    const std::size_t range = i == 0 ? 0 : std::get<0>(order.back()) + (same ? 0 : 1);
    order.emplace_back(range, place_of(given[i]), i);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [range, place, number] : order) {
    const ShardStart& start = given[number];
    if (place == nullptr || start.resources.ranks > 1 || start.resources.nodes > 1) {
      tell_end(start.key, EndCause::kUserError,
               place == nullptr ? "the site " + options.site.name + " has no GPU of type `" +
                                      start.resources.gpu_type + "`"
                                : "is a gang of several ranks, which are not built yet",
               "");
      continue;
    }
    job_of_token[start.token] = start.key.job;
    if (waiting.empty() || waiting.back().unsure || waiting.back().model.token != start.token ||
        waiting.back().place != place || waiting.back().model.resources != start.resources) {
      waiting.push_back({.model = start, .place = place, .shards = {}});
      make_folders(ends_folder(start.job_file));
    }
    waiting.back().shards.push_back(start.key.shard);
  }
}

SlurmJob SlurmExecutor::State::job_for(const Batch& batch) {
  const Resources& r = batch.model.resources;
  const workflow::SitePlace& place = *batch.place;
  std::vector<std::uint32_t> indices = batch.shards;
  for (std::uint32_t& index : indices) index -= batch.base;
  SlurmJob job = job_at(place, r.gpus);
  job.name = batch.name();
  job.script = batch_script(batch.model, batch.base, place, options.programs);
  job.folder = options.run;
  job.output = (batch.model.job_file.parent_path() / "slurm.log").lexically_relative(options.run);
  job.array = format_indices(indices);
  job.cpus = static_cast<std::uint32_t>(std::max(1, r.cpus));
  std::erase_if(avoid, [](const auto& node) { return node.second < Clock::now(); });
  if (!batch.anywhere)
    for (const auto& [node, until] : avoid) job.exclude += (job.exclude.empty() ? "" : ",") + node;
  const std::uint64_t memory =
      r.memory_bytes > 0 ? r.memory_bytes : place.memory_per_cpu * static_cast<std::uint64_t>(r.cpus);
  double time_s = r.time_s;
  if (place.max_time_s > 0 && (time_s <= 0 || time_s > place.max_time_s)) time_s = place.max_time_s;
  // A minute more than ours, where the place allows it: the program's own limit strikes first, and says so.
  if (time_s > 0) job.minutes = static_cast<std::uint32_t>(std::ceil(time_s / 60)) + 1;
  if (place.max_time_s >= 60)
    job.minutes = std::min(job.minutes, static_cast<std::uint32_t>(place.max_time_s / 60));
  if (memory > 0) job.memory_mib = (memory + kOwnMemory + (1 << 20) - 1) >> 20;
  return job;
}

Clock::time_point SlurmExecutor::State::submit_at() const {
  auto at = Clock::time_point::max();
  if (!waiting.empty() && waiting.front().unsure) return at;
  for (const Batch& batch : waiting) {
    const auto place = closed.find(batch.place);
    if (place == closed.end()) return {};
    at = std::min(at, place->second.until);
  }
  return at;
}

Batch SlurmExecutor::State::take_array(Batch& batch) const {
  std::vector<std::uint32_t>& from = batch.shards;
  Batch taken = batch;
  taken.base = base_of(from.front());
  const auto most = from.begin() + static_cast<std::ptrdiff_t>(std::min(from.size(), most_tasks));
  const auto end =
      std::find_if(from.begin(), most, [&](std::uint32_t s) { return base_of(s) != taken.base; });
  taken.shards.assign(from.begin(), end);
  from.erase(from.begin(), end);
  return taken;
}

void SlurmExecutor::State::submit_next() {
  const auto next = std::find_if(waiting.begin(), waiting.end(), [&](const Batch& one) {
    const auto place = closed.find(one.place);
    return place == closed.end() || place->second.until <= Clock::now();
  });
  auto batch = std::make_shared<Batch>(take_array(*next));
  if (next->shards.empty()) waiting.erase(next);
  submitting = batch;
  auto job = std::make_shared<SlurmJob>(job_for(*batch));
  // A place that is known to be full is not looked into again while jobs of ours may make room.
  const bool look = batch->shards.size() == 1 && (live.empty() || !closed.contains(batch->place));
  calls->post([this, batch, job, look](Cluster& cluster) -> Calls::Answer {
    try {
      const std::uint32_t id = cluster.submit(*job);
      return [this, batch, id, n = cluster.requests()] {
        requests = n;
        submitting.reset();
        answered();
        closed.erase(batch->place);
        taken(*batch, id);
      };
    } catch (const SlurmError& e) {
      const bool vain = look && e.trouble() == SlurmTrouble::kPolicy && !limit_may_clear(cluster, *job);
      const SlurmError error = vain ? SlurmError(SlurmTrouble::kRefused, e.code(), e.what()) : e;
      std::optional<SlurmFacts> now;
      try {
        if (e.trouble() == SlurmTrouble::kArray) now = cluster.facts();
      } catch (const SlurmError&) {  // then we halve
      }
      return [this, batch, error, now, n = cluster.requests()] {
        requests = n;
        submitting.reset();
        refused(std::move(*batch), error, now);
      };
    }
  });
}

void SlurmExecutor::State::add_live(const ShardKey& key, const Batch& batch, std::uint32_t id) {
  Live shard{.token = batch.model.token,
             .ends = ends_folder(batch.model.job_file),
             .base = batch.base,
             .array = id,
             .index = key.shard - batch.base,
             .since = Clock::now(),
             .since_s = std::time(nullptr),
             .missing_since = {},
             .ended_since = {},
             .last = {}};
  if (unwanted.erase(key) > 0) {
    shard.cancelling = true;
    if (id != 0) to_cancel[id].insert(shard.index);
  }
  const std::filesystem::path folder = shard.ends;
  if (live.insert_or_assign(key, std::move(shard)).second)
    ++ends.try_emplace(folder, folder).first->second.live;
}

void SlurmExecutor::State::taken(const Batch& batch, std::uint32_t id) {
  any_submitted = true;
  for (const std::uint32_t shard : batch.shards) add_live({batch.model.key.job, shard}, batch, id);
  status_pause = first_status();
  next_status = std::min(next_status, Clock::now() + status_pause);
}

void SlurmExecutor::State::put_off(Batch batch, const SlurmError& e) {
  ClosedPlace& place = closed[batch.place];
  place.until = Clock::now() + place.pause;
  place.pause = std::min<Clock::duration>(place.pause * 2, seconds(10));
  place.full = e.trouble() != SlurmTrouble::kClosed;
  place.why =
      std::string(place.full ? "the queue is full: " : "waits, as Slurm takes no jobs there for now: ") +
      e.what();
  waiting.push_front(std::move(batch));
}

void SlurmExecutor::State::give_up(const Batch& batch, const SlurmError& e) {
  for (const std::uint32_t shard : batch.shards) {
    unwanted.erase({batch.model.key.job, shard});
    tell_end({batch.model.key.job, shard}, EndCause::kUserError, e.what(), "");
  }
}

void SlurmExecutor::State::refused(Batch batch, const SlurmError& e, const std::optional<SlurmFacts>& now) {
  const std::size_t size = batch.shards.size();
  switch (e.trouble()) {
    case SlurmTrouble::kArray:
      answered();
      if (!make_arrays_smaller(batch, now)) return give_up(batch, e);
      waiting.push_front(std::move(batch));
      return;
    case SlurmTrouble::kLimit:
    case SlurmTrouble::kPolicy: {
      answered();
      if (size == 1) return put_off(std::move(batch), e);
      // Half of it may fit: what the limit is cannot be read everywhere.
      Batch rest = batch;
      const auto half = static_cast<std::ptrdiff_t>(size / 2);
      rest.shards.erase(rest.shards.begin(), rest.shards.begin() + half);
      batch.shards.erase(batch.shards.begin() + half, batch.shards.end());
      waiting.push_front(std::move(rest));
      waiting.push_front(std::move(batch));
      return;
    }
    case SlurmTrouble::kClosed:
      answered();
      return put_off(std::move(batch), e);
    case SlurmTrouble::kUnsure:
      batch.unsure = true;
      batch.lost_at = Clock::now();
      next_status = Clock::now();
      [[fallthrough]];
    case SlurmTrouble::kAway:
      waiting.push_front(std::move(batch));
      away(e);
      return;
    case SlurmTrouble::kGone:
    case SlurmTrouble::kRefused:
      answered();
      if (avoid.empty() || std::exchange(batch.anywhere, true)) return give_up(batch, e);
      waiting.push_front(std::move(batch));
      return;
  }
}

void SlurmExecutor::State::cancel(const std::set<ShardKey>& keys) {
  const auto cancel_on_arrival = [&](const Batch& batch) {
    for (const std::uint32_t shard : batch.shards)
      if (keys.contains({batch.model.key.job, shard})) unwanted.insert({batch.model.key.job, shard});
  };
  if (submitting != nullptr) cancel_on_arrival(*submitting);
  for (auto batch = waiting.begin(); batch != waiting.end();) {
    if (batch->unsure)
      cancel_on_arrival(*batch);
    else
      std::erase_if(batch->shards, [&](std::uint32_t shard) {
        const ShardKey key{batch->model.key.job, shard};
        if (!keys.contains(key)) return false;
        tell_end(key, EndCause::kCancelled, "had not been submitted", "");
        return true;
      });
    batch = batch->shards.empty() ? waiting.erase(batch) : std::next(batch);
  }
  for (auto& [key, shard] : live) {
    if (shard.cancelling || !keys.contains(key)) continue;
    shard.cancelling = true;
    if (shard.array != 0) to_cancel[shard.array].insert(shard.index);
  }
  next_status = std::min(next_status, Clock::now());
}

void SlurmExecutor::State::cancel_next() {
  std::string what;
  std::uint32_t array = 0;
  std::vector<std::uint32_t> indices;
  if (!leftovers.empty()) {
    array = *leftovers.begin();
    leftovers.erase(leftovers.begin());
    what = std::to_string(array);
  } else {
    array = to_cancel.begin()->first;
    indices.assign(to_cancel.begin()->second.begin(), to_cancel.begin()->second.end());
    to_cancel.erase(to_cancel.begin());
    what = fmt::format("{}_[{}]", array, format_indices(indices));
  }
  calls->post([this, what, array, indices](Cluster& cluster) -> Calls::Answer {
    try {
      cluster.cancel(what);
    } catch (const SlurmError& e) {
      return [this, e, array, indices] {
        if (e.trouble() == SlurmTrouble::kRefused) {
          trouble = e.what();
          return;
        }
        if (indices.empty())
          leftovers.insert(array);
        else
          to_cancel[array].insert(indices.begin(), indices.end());
        away(e);
      };
    }
    return [this, array, indices, n = cluster.requests()] {
      requests = n;
      answered();
      // Tasks that had not started leave no record at all.
      for (auto& [key, shard] : live) {
        const bool meant = shard.array == array && shard.cancelling && !shard.started &&
                           std::binary_search(indices.begin(), indices.end(), shard.index);
        if (!meant || shard.last.state == SlurmState::kRunning || shard.missing_since) continue;
        shard.missing_since = Clock::now();
        any_silent = true;
      }
      next_status = std::min(next_status, Clock::now() + seconds(1));
    };
  });
}

}  // namespace warpsmith::executor
