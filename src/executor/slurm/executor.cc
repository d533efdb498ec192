#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <tuple>
#include <utility>

#include "executor_state.h"
#include "warpsmith/base/files.h"
#include "warpsmith/executor/site_probe.h"

namespace warpsmith::executor {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr auto kLookAtFiles = milliseconds(100);  // between looks at the ends folders …
// … and longer where many are live: each look ends in a commit of the journal. Nobody waits for one of a
// thousand.
constexpr auto kLookAShard = std::chrono::microseconds(500);
constexpr auto kLongestLook = milliseconds(1000);
constexpr int kLooks = 50;  // … and this many times what a look took
constexpr auto kShutDown = seconds(60);
constexpr auto kLastTasks = seconds(15);

// When a file was changed, in seconds since 1970; 0 where that cannot be seen.
std::int64_t changed_s(const std::filesystem::path& file) {
  std::error_code failed;
  const auto time = std::filesystem::last_write_time(file, failed);
  if (failed) return 0;
  return std::chrono::duration_cast<seconds>(std::chrono::file_clock::to_sys(time).time_since_epoch())
      .count();
}

bool is_held(const Live& shard) { return shard.is_seen() && shard.last.held; }

// An expected start that is over says nothing: Slurm made it before the job had to wait for something else.
bool starts_by_itself(const SlurmTask& task) {
  constexpr std::int64_t kLate = 60;
  return task.state == SlurmState::kPending && !task.held && !waits_in_vain(task.reason) &&
         task.started > std::time(nullptr) - kLate;
}

// Their places in the queue read the same.
bool looks_like(const Live& a, const Live& b) {
  return a.is_seen() == b.is_seen() && a.last.state == b.last.state && a.last.reason == b.last.reason;
}

}  // namespace

void SlurmExecutor::State::tell_started(const ShardKey& key, Live& shard, std::string detail) {
  shard.started = true;
  ShardEvent event;
  event.kind = ShardEvent::Kind::kStarted;
  event.key = key;
  event.where = shard.where();
  event.detail = std::move(detail);
  events.push_back(std::move(event));
}

void SlurmExecutor::State::away(const SlurmError& e) {
  const auto now = Clock::now();
  if (!away_since) away_since = now;
  away_until = now + away_pause;
  away_pause = std::min<Clock::duration>(away_pause * 2, seconds(30));
  trouble = e.what();
}

void SlurmExecutor::State::answered() {
  away_since.reset();
  away_pause = seconds(1);
  trouble.clear();
}

void SlurmExecutor::State::drive() {
  const auto now = Clock::now();
  if (now >= next_files) {
    look_at_words();
    const auto took = Clock::now() - now;
    const Clock::duration pause =
        std::min<Clock::duration>(kLookAtFiles + live.size() * kLookAShard, kLongestLook);
    next_files = Clock::now() + std::max<Clock::duration>(pause, took * kLooks);
  }
  if (now >= next_grace) {
    look_at_the_silent();
    next_grace = Clock::now() + milliseconds(500);
  }
  if (calls->busy() || now < away_until) return;
  if (!to_cancel.empty() || !leftovers.empty()) return cancel_next();
  if (now >= submit_at()) return submit_next();
  if ((any_unsure() || !live.empty() || last_look) && now >= next_status && bucket.take(now))
    return ask_status();
  if (!to_account.empty() && now >= next_account && bucket.take(now)) ask_accounting();
}

Clock::time_point SlurmExecutor::State::next_thing() {
  const auto now = Clock::now();
  Clock::time_point next = now + seconds(1);
  if (!ends.empty()) next = std::min(next, next_files);
  if (!live.empty()) next = std::min({next, next_grace, std::max(next_status, bucket.next(now))});
  if (const auto at = submit_at(); at > now) next = std::min(next, at);
  return std::max(next, now + milliseconds(20));
}

SlurmExecutor::SlurmExecutor(std::unique_ptr<Cluster> cluster, SlurmOptions options)
    : state_(std::make_unique<State>(std::move(cluster), std::move(options))) {}

SlurmExecutor::~SlurmExecutor() = default;

void SlurmExecutor::submit(const std::vector<ShardStart>& shards) { state_->enqueue(shards); }

void SlurmExecutor::cancel(const std::vector<ShardKey>& shards) {
  state_->cancel({shards.begin(), shards.end()});
}

std::vector<ShardEvent> SlurmExecutor::poll(milliseconds timeout) {
  State& s = *state_;
  const auto until = Clock::now() + timeout;
  for (;;) {
    s.calls->collect();
    s.drive();
    if (!s.events.empty() || Clock::now() >= until) return std::exchange(s.events, {});
    s.calls->wait_for_answer(std::min(until, s.next_thing()));
  }
}

std::size_t SlurmExecutor::capacity() const { return state_->limit; }

void SlurmExecutor::attach(const std::vector<ShardStart>& shards) {
  State& s = *state_;
  std::map<std::filesystem::path, std::int64_t> written;  // job files
  for (const ShardStart& start : shards) {
    s.job_of_token[start.token] = start.key.job;
    const auto [job, is_new] = written.try_emplace(start.job_file, 0);
    if (is_new) {
      job->second = changed_s(start.job_file);
      make_folders(ends_folder(start.job_file));
    }
    const Batch batch{.model = start, .base = s.base_of(start.key.shard), .shards = {}};
    s.add_live(start.key, batch, 0);
    Live& shard = s.live.at(start.key);
    shard.attached_s = std::time(nullptr);
    shard.since_s = job->second;
  }
  s.next_status = Clock::now();
}

void SlurmExecutor::shut_down() {
  State& s = *state_;
  if (!s.calls) return;
  s.ending = true;
  std::set<ShardKey> all;
  const auto add = [&all](const Batch& batch) {
    for (const std::uint32_t shard : batch.shards) all.insert({batch.model.key.job, shard});
  };
  for (const Batch& batch : s.waiting) add(batch);
  if (s.submitting != nullptr) add(*s.submitting);
  for (const auto& [key, shard] : s.live) all.insert(key);
  s.cancel(all);
  const auto until = Clock::now() + kShutDown;
  while (!s.awaits_nothing() && Clock::now() < until) (void)poll(milliseconds(100));
  const bool left = !s.live.empty() || !s.waiting.empty() || s.submitting != nullptr;
  // Nothing of the run is to stay in the queue. A task whose shard has had its last word is gone within
  // seconds.
  const auto calm = Clock::now() + kLastTasks;
  s.last_look = true;
  while (!left && s.any_submitted && Clock::now() < calm) {
    s.status_taken = false;
    s.next_status = Clock::now();
    while (!s.status_taken && Clock::now() < calm) (void)poll(milliseconds(50));
    if (s.status_taken && s.strays == 0 && s.awaits_nothing()) break;
    (void)poll(milliseconds(500));
  }
  const std::string trouble = s.trouble;
  s.calls.reset();
  if (left)
    throw SlurmError(
        SlurmTrouble::kAway, 0,
        "the run's jobs were told to end, but it could not be seen that they have (`squeue --me`)" +
            (trouble.empty() ? "" : ": " + trouble));
}

void SlurmExecutor::detach() { state_->calls.reset(); }

run::ExecutorView SlurmExecutor::view() const {
  const State& s = *state_;
  run::ExecutorView view;
  view.requests = s.requests;
  for (const Batch& batch : s.waiting) {
    const auto place = s.closed.find(batch.place);
    const bool open = place == s.closed.end();
    view.shards[open                 ? "WAITING (to be submitted)"
                : place->second.full ? "WAITING (queue full)"
                                     : "WAITING (not available)"] += batch.shards.size();
    if (!open) view.trouble = place->second.why;
  }
  // Asked for each second, about thousands that are mostly alike: a text is made where one differs from the
  // one before it.
  std::size_t* count = nullptr;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::string>, std::vector<std::uint32_t>> held;
  const Live* before = nullptr;
  for (const auto& [key, shard] : s.live) {
    if (before == nullptr || !looks_like(*before, shard)) {
      std::string state(shard.is_seen() ? to_string(shard.last.state) : "SUBMITTED");
      if (shard.last.state == SlurmState::kPending && !shard.last.reason.empty())
        state += " (" + shard.last.reason + ")";
      count = &view.shards[state];
    }
    before = &shard;
    ++*count;
    if (shard.last.state == SlurmState::kRunning && !shard.last.gres.empty())
      ++view.gpus[shard.last.gres.substr(0, shard.last.gres.find('('))];
    if (starts_by_itself(shard.last) && shard.last.started > 0)
      view.next_start =
          view.next_start == 0 ? shard.last.started : std::min(view.next_start, shard.last.started);
    if (is_held(shard)) held[{key.job, shard.array, shard.last.reason}].push_back(shard.index);
  }
  for (const auto& [of, indices] : held) {
    const auto& [job, array, reason] = of;
    view.held.push_back({job, fmt::format("{}_[{}]", array, format_indices(indices)), reason});
  }
  if (!s.trouble.empty()) view.trouble = s.trouble;
  if (s.away_since)
    view.trouble =
        fmt::format("Slurm does not answer since {} s: {}",
                    std::chrono::duration_cast<seconds>(Clock::now() - *s.away_since).count(), s.trouble);
  return view;
}

}  // namespace warpsmith::executor
