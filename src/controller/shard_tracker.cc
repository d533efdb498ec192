#include "shard_tracker.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "warpsmith/base/error.h"
#include "warpsmith/base/paths.h"

namespace warpsmith::controller {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

void ShardTracker::replay(const run::Event& event) {
  if (event.kind != run::EventKind::kSubmitted) return;
  submissions_ = std::max(submissions_, event.submission);
  earlier_[event.job].push_back({event.shard, event.end, event.submission});
}

double ShardTracker::unsaid_gpu_s() {
  double all_s = 0;
  for (const auto& [job, wall_s] : core_.usage.unsaid_s())
    all_s += wall_s * job_on_disk(job).file.resources.gpus_held();
  on_disk_.clear();
  return all_s;
}

std::optional<LiveJob> ShardTracker::take(std::uint32_t number) {
  const auto found = jobs_.find(number);
  if (found == jobs_.end()) return std::nullopt;
  LiveJob job = std::move(found->second);
  jobs_.erase(found);
  return job;
}

void ShardTracker::look_at_early() {
  for (const run::ShardEvent& event : std::exchange(early_, {})) on_event(event);
}

void ShardTracker::end_all() {
  // What they took until then counts; a cluster is not asked once more for it.
  if (!core_.parts.executor->outlives() && !core_.reactor.unresolved().empty())
    for (const run::ShardEvent& event : core_.parts.executor->poll(0ms))
      if (event.kind == run::ShardEvent::Kind::kEnded) on_event(event);
  for (const run::ShardKey key : core_.reactor.unresolved()) {
    if (jobs_.contains(key.job))
      on_shard_end(key, EndCause::kCancelled, nullptr);
    else
      end_unknown(key);
  }
}

std::string ShardTracker::why_failed(std::uint32_t execution) const {
  const run::Reactor& reactor = core_.reactor;
  for (const std::uint32_t job : reactor.jobs_of(execution))
    for (std::uint32_t s = 0; s < reactor.job(job).shards; ++s) {
      const run::ShardKey key{job, s};
      if (!reactor.shard_failed(key)) continue;
      const auto reason = reasons_.find(key);
      return core_.where(key) + " ended by " + std::string(to_string(reactor.last_cause(key))) + " after " +
             std::to_string(reactor.attempts(key)) + (reactor.attempts(key) == 1 ? " attempt" : " attempts") +
             (reason == reasons_.end() ? "" : ": " + reason->second);
    }
  return "";
}

std::string ShardTracker::token_of(const JobFile& file, std::uint32_t submission) const {
  return file.token + "-" + std::to_string(submission);
}

const ShardTracker::JobOnDisk& ShardTracker::job_on_disk(std::uint32_t job) {
  const auto found = on_disk_.find(job);
  if (found != on_disk_.end()) return found->second;
  const run::JobView& view = core_.reactor.job(job);
  const auto& [name, hash] = core_.reactor.execution_key(view.execution);
  JobOnDisk one{.folder = job_folder(stage_folder(core_.parts.run, name, hash), view.round, view.name)};
  if (path_exists(one.folder / "job.json")) one.file = read_job_file(one.folder / "job.json");
  if (keeps_no_records(one.file)) one.done = read_done_shards(one.folder);
  return on_disk_.emplace(job, std::move(one)).first->second;
}

std::uint32_t ShardTracker::open_on_disk(run::ShardKey key) {
  const auto& [folder, file, done] = job_on_disk(key.job);
  if (key.shard >= file.shards.size()) return 1;
  const auto range = file.shards[key.shard];
  if (done.contains(key.shard)) return 0;
  std::vector<std::string> ids(range.second);
  for (Item& item : read_items(folder / "items.jsonl", range.first, range.second))
    ids[item.index] = std::move(item.id);
  std::string problem;
  const std::uint32_t open =
      settle_open_items({folder / std::to_string(key.shard), ids, range, has_extras(file)}, problem);
  if (!problem.empty()) core_.tell(core_.where(key) + ": " + problem);
  return open;
}

void ShardTracker::end_unknown(run::ShardKey key) {
  core_.say({.kind = run::EventKind::kShardEnded,
             .job = key.job,
             .shard = key.shard,
             .cause = EndCause::kUnknown,
             .open = open_on_disk(key)});
}

void ShardTracker::resolve_unfinished() {
  if (core_.parts.executor->outlives()) {
    attach();
  } else {
    if (const int left = end_leftovers(core_.parts.run); left > 0)
      core_.tell("ended " + std::to_string(left) + " processes that the last controller left behind");
    for (const run::ShardKey key : core_.reactor.unresolved()) end_unknown(key);
  }
  earlier_.clear();
}

void ShardTracker::attach() {
  std::vector<run::ShardStart> shards;
  for (const run::ShardKey key : core_.reactor.unresolved()) {
    std::uint32_t number = 0;
    for (const Submission& one : earlier_[key.job])
      if (one.begin <= key.shard && key.shard < one.end) number = one.number;
    const auto& [folder, file, done] = job_on_disk(key.job);
    if (number == 0 || key.shard >= file.shards.size()) {
      end_unknown(key);
      continue;
    }
    shards.push_back({.key = key,
                      .job_file = folder / "job.json",
                      .program = {},
                      .arguments = {},
                      .log = folder / std::to_string(key.shard) / "log.txt",
                      .resources = file.resources,
                      .token = token_of(file, number)});
  }
  if (shards.empty()) return;
  attached_ = true;
  core_.tell("attached to " + std::to_string(shards.size()) + " shards that the last controller submitted");
  core_.parts.executor->attach(shards);
}

void ShardTracker::cancel_orphans() {
  if (!attached_) return;
  attached_ = false;
  std::vector<run::ShardKey> orphans;
  for (const run::ShardKey key : core_.reactor.unresolved())
    if (!jobs_.contains(key.job)) orphans.push_back(key);
  if (!orphans.empty()) core_.parts.executor->cancel(orphans);
}

void ShardTracker::on_event(const run::ShardEvent& event) {
  if (event.key.job >= core_.reactor.jobs() || event.key.shard >= core_.reactor.job(event.key.job).shards)
    return;
  if (!jobs_.contains(event.key.job) && core_.parts.executor->outlives()) {
    if (attached_)  // its stage may yet ask for the job
      early_.push_back(event);
    else if (event.kind == run::ShardEvent::Kind::kEnded)
      end_unknown(event.key);
    return;
  }
  if (event.kind == run::ShardEvent::Kind::kStarted) on_started(event);
  if (event.kind == run::ShardEvent::Kind::kEnded) on_ended(event);
}

void ShardTracker::on_started(const run::ShardEvent& event) {
  running_.insert(event.key);
  core_.note({.kind = run::EventKind::kShardStarted,
              .job = event.key.job,
              .shard = event.key.shard,
              .text = event.where});
  if (!event.detail.empty()) core_.tell(core_.where(event.key) + ": " + event.detail);
}

void ShardTracker::on_ended(run::ShardEvent end) {
  // A shell or a guard in between says 128 + n where the program died of signal n.
  if (end.cause == EndCause::kFailed && end.exit_code > 128 && end.exit_code < 160) {
    end.cause = EndCause::kCrash;
    end.signal = end.exit_code - 128;
    end.exit_code = 0;
  }
  // A terminal's Ctrl-C reaches the shards as well: that is no crash of theirs.
  if (end.cause == EndCause::kCrash && core_.parts.interrupted()) end.cause = EndCause::kCancelled;
  const auto found = jobs_.find(end.key.job);
  if (found != jobs_.end() && end.cause == EndCause::kFinished && keeps_no_records(found->second.file) &&
      found->second.done.insert(end.key.shard).second)
    core_.log->note_done(found->second.folder, end.key.shard);
  const std::uint32_t open = found != jobs_.end() ? open_items_of(end.key) : 0;
  if (end.cause == EndCause::kFinished && core_.parts.executor->outlives() && open > 0) {
    const std::chrono::duration<double> patience(core_.parts.late_records_s);
    late_.push_back({end, clock_() + std::chrono::duration_cast<steady_clock::duration>(patience)});
  } else {
    on_shard_end(end.key, end.cause, &end, open);
  }
}

std::uint32_t ShardTracker::open_items_of(run::ShardKey key) const {
  const LiveJob& job = jobs_.at(key.job);
  // Where its records are damaged, that is told and mended once it has ended.
  return job.done.contains(key.shard) ? 0 : count_open_items(job.items_of(key.shard));
}

void ShardTracker::look_at_late() {
  const auto now = clock_();
  if (late_.empty() || now < next_late_) return;
  next_late_ = now + 500ms;
  for (Late& one : std::exchange(late_, {})) {
    if (now < one.until && jobs_.contains(one.event.key.job) && open_items_of(one.event.key) > 0)
      late_.push_back(std::move(one));
    else
      on_shard_end(one.event.key, one.event.cause, &one.event);
  }
}

void ShardTracker::on_shard_end(run::ShardKey key, EndCause cause, const run::ShardEvent* event,
                                std::optional<std::uint32_t> known_open) {
  running_.erase(key);
  const auto found = jobs_.find(key.job);
  if (found == jobs_.end()) return;
  LiveJob& job = found->second;
  if (job.is_service()) fs::remove(job.folder / kServiceFile);
  std::uint32_t open = known_open ? *known_open : open_items_of(key);
  std::string problem;  // of its records
  if (open > 0 && !keeps_no_records(job.file)) open = settle_open_items(job.items_of(key.shard), problem);
  run::Event end{
      .kind = run::EventKind::kShardEnded, .job = key.job, .shard = key.shard, .cause = cause, .open = open};
  if (event != nullptr) {
    end.exit_code = event->exit_code;
    end.signal = event->signal;
    end.wall_s = event->wall_s;
    end.cpu_s = event->cpu_s;
    end.memory = event->peak_memory_bytes;
    end.text = event->detail;
    if (core_.parts.executor->outlives()) end.name = event->where;
    core_.phase_s[job.file.job] += event->wall_s;
  }
  if (!problem.empty()) end.text = end.text.empty() ? problem : end.text + "; " + problem;
  core_.say(end);
  if (open == 0 || cause == EndCause::kCancelled) {
    if (!problem.empty()) core_.tell(core_.where(key) + ": " + problem);
    return;
  }
  tell_of_end(key, end, job);
}

void ShardTracker::tell_of_end(run::ShardKey key, const run::Event& end, const LiveJob& job) {
  std::string message = core_.where(key) + ": " +
                        (end.cause == EndCause::kFinished ? std::string("ended without all of its records")
                                                          : std::string(to_string(end.cause)));
  if (end.signal != 0) message += " (signal " + std::to_string(end.signal) + ")";
  if (end.exit_code != 0) message += " (exit code " + std::to_string(end.exit_code) + ")";
  if (!end.text.empty()) message += ": " + end.text;
  message += ", " + std::to_string(end.open) + " of " + std::to_string(job.items_of(key.shard).count()) +
             " items left";
  const bool failed = core_.reactor.shard_failed(key);
  if (failed && end.cause == EndCause::kDiskFull) disk_was_full_ = true;
  if (failed && !end.text.empty()) reasons_[key] = end.text;
  core_.tell(message + (failed ? ", no retries left; log: " : ", started again; log: ") +
             (job.folder / std::to_string(key.shard) / "log.txt").string());
}

void ShardTracker::submit(const std::vector<run::ShardRange>& ranges) {
  for (const run::ShardRange& range : ranges) {
    const LiveJob& job = jobs_.at(range.job);
    ++submissions_;
    if (job.is_service())  // an earlier life's, and what somebody wanted then
      for (const char* file : {kServiceFile, kWeightsFile}) fs::remove(job.folder / file);
    run::ShardStart start{.key = {range.job, 0},
                          .job_file = job.folder / "job.json",
                          .program = job.program,
                          .arguments = job.file.arguments,
                          .log = {},
                          .resources = job.resources,
                          .token = token_of(job.file, submissions_)};
    start.resources.memory_bytes = static_cast<std::uint64_t>(
        static_cast<double>(job.resources.memory_bytes) * std::pow(job.memory_factor, range.memory_retries));
    core_.note({.kind = run::EventKind::kSubmitted,
                .job = range.job,
                .shard = range.begin,
                .end = range.end,
                .submission = submissions_,
                .cpus = std::max(1, start.resources.cpus),
                .gpus = start.resources.gpus,
                .shards_a_gpu = start.resources.shards_a_gpu > 1 ? start.resources.shards_a_gpu : 0,
                .time_s = start.resources.time_s,
                .memory = start.resources.memory_bytes,
                .text = start.resources.gpu_type});
    for (std::uint32_t s = range.begin; s < range.end; ++s) {
      start.key.shard = s;
      start.log = job.folder / std::to_string(s) / "log.txt";  // its folder appears when it starts
      core_.log->hand_over_later(start);
    }
  }
}

}  // namespace warpsmith::controller
