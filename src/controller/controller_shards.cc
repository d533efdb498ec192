// What becomes of shards: those of an earlier controller, how each ends, and which of its items are left.
#include <algorithm>
#include <chrono>
#include <utility>

#include "controller_state.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/records/done_shards.h"

namespace warpsmith::controller {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

const Controller::State::JobOnDisk& Controller::State::job_on_disk(std::uint32_t job) {
  const auto found = job_files.find(job);
  if (found != job_files.end()) return found->second;
  const run::JobView& view = reactor.job(job);
  const auto& [name, hash] = reactor.execution_key(view.execution);
  JobOnDisk one{.folder = job_folder(stage_folder(parts.run, name, hash), view.round, view.name)};
  if (path_exists(one.folder / "job.json")) one.file = read_job_file(one.folder / "job.json");
  if (keeps_no_records(one.file)) one.done = read_done_shards(one.folder);
  return job_files.emplace(job, std::move(one)).first->second;
}

std::uint32_t Controller::State::open_on_disk(run::ShardKey key) {
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
  if (!problem.empty()) parts.observer->on_message(where(key) + ": " + problem);
  return open;
}

void Controller::State::end_unknown(run::ShardKey key) {
  say({.kind = run::EventKind::kShardEnded,
       .job = key.job,
       .shard = key.shard,
       .cause = EndCause::kUnknown,
       .open = open_on_disk(key)});
}

// Shards that were in flight when the controller before this one ended. Here their processes have died with
// it, or die now, and their records say how far they got; on a cluster they go on.
void Controller::State::resolve_unfinished() {
  if (parts.executor->outlives()) {
    attach();
  } else {
    if (const int left = end_leftovers(parts.run); left > 0)
      parts.observer->on_message("ended " + std::to_string(left) +
                                 " processes that the last controller left behind");
    for (const run::ShardKey key : reactor.unresolved()) end_unknown(key);
  }
}

void Controller::State::attach() {
  std::vector<run::ShardStart> shards;
  for (const run::ShardKey key : reactor.unresolved()) {
    std::uint32_t number = 0;
    for (const Submission& one : earlier_submissions[key.job])
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
  attached = true;
  parts.observer->on_message("attached to " + std::to_string(shards.size()) +
                             " shards that the last controller submitted");
  parts.executor->attach(shards);
}

// Once every stage that can begin has begun: in-flight shards of other versions, or of stages that are not
// wanted now.
void Controller::State::cancel_orphans() {
  attached = false;
  std::vector<run::ShardKey> orphans;
  for (const run::ShardKey key : reactor.unresolved())
    if (!jobs.contains(key.job)) orphans.push_back(key);
  if (!orphans.empty()) parts.executor->cancel(orphans);
}

void Controller::State::on_event(const run::ShardEvent& event) {
  if (event.key.job >= reactor.jobs() || event.key.shard >= reactor.job(event.key.job).shards) return;
  if (!jobs.contains(event.key.job) && parts.executor->outlives()) {
    if (attached)  // its stage may yet ask for the job
      early.push_back(event);
    else if (event.kind == run::ShardEvent::Kind::kEnded)
      end_unknown(event.key);
    return;
  }
  switch (event.kind) {
    case run::ShardEvent::Kind::kStarted:
      running.insert(event.key);
      note({.kind = run::EventKind::kShardStarted,
            .job = event.key.job,
            .shard = event.key.shard,
            .text = event.where});
      if (!event.detail.empty()) parts.observer->on_message(where(event.key) + ": " + event.detail);
      return;
    case run::ShardEvent::Kind::kProgress:
      return;
    case run::ShardEvent::Kind::kEnded: {
      run::ShardEvent end = event;
      // A shell or a guard in between says 128 + n where the program died of signal n.
      if (end.cause == EndCause::kFailed && end.exit_code > 128 && end.exit_code < 160) {
        end.cause = EndCause::kCrash;
        end.signal = end.exit_code - 128;
        end.exit_code = 0;
      }
      // A terminal's Ctrl-C reaches the shards as well: that is no crash of theirs.
      if (end.cause == EndCause::kCrash && parts.interrupted()) end.cause = EndCause::kCancelled;
      if (LiveJob* job = find_job(end.key.job); job != nullptr && end.cause == EndCause::kFinished &&
                                                keeps_no_records(job->file) &&
                                                job->done.insert(end.key.shard).second)
        journal->note_done(job->folder, end.key.shard);
      const std::uint32_t open = jobs.contains(end.key.job) ? open_items_of(end.key) : 0;
      if (end.cause == EndCause::kFinished && parts.executor->outlives() && open > 0)
        late.push_back({end, steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(
                                                       std::chrono::duration<double>(parts.late_records_s))});
      else
        on_shard_end(end.key, end.cause, &end, open);
      return;
    }
  }
}

LiveJob* Controller::State::find_job(std::uint32_t job) {
  const auto found = jobs.find(job);
  return found == jobs.end() ? nullptr : &found->second;
}

std::uint32_t Controller::State::open_items_of(run::ShardKey key) const {
  const LiveJob& job = jobs.at(key.job);
  // Where its records are damaged, that is told and mended once it has ended.
  return job.done.contains(key.shard) ? 0 : count_open_items(job.items_of(key.shard));
}

void Controller::State::look_at_late_records() {
  const auto now = steady_clock::now();
  if (late.empty() || now < next_late) return;
  next_late = now + 500ms;
  for (Late& one : std::exchange(late, {})) {
    if (now < one.until && jobs.contains(one.event.key.job) && open_items_of(one.event.key) > 0)
      late.push_back(std::move(one));
    else
      on_shard_end(one.event.key, one.event.cause, &one.event);
  }
}

void Controller::State::on_shard_end(run::ShardKey key, EndCause cause, const run::ShardEvent* event,
                                     std::optional<std::uint32_t> known_open) {
  running.erase(key);
  const auto found = jobs.find(key.job);
  if (found == jobs.end()) return;
  LiveJob& job = found->second;
  if (live[job.stage].spec->kind == "service") fs::remove(job.folder / kServiceFile);
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
    if (parts.executor->outlives()) end.name = event->where;
    phase_s[job.file.job] += event->wall_s;
  }
  if (!problem.empty()) end.text = end.text.empty() ? problem : end.text + "; " + problem;
  say(end);
  if (open == 0 || cause == EndCause::kCancelled) {
    if (!problem.empty()) parts.observer->on_message(where(key) + ": " + problem);
    return;
  }
  std::string message = where(key) + ": " +
                        (cause == EndCause::kFinished ? std::string("ended without all of its records")
                                                      : std::string(to_string(cause)));
  if (end.signal != 0) message += " (signal " + std::to_string(end.signal) + ")";
  if (end.exit_code != 0) message += " (exit code " + std::to_string(end.exit_code) + ")";
  if (!end.text.empty()) message += ": " + end.text;
  message +=
      ", " + std::to_string(open) + " of " + std::to_string(job.items_of(key.shard).count()) + " items left";
  const bool failed = reactor.shard_failed(key);
  if (failed && cause == EndCause::kDiskFull) environment = true;
  if (failed && !end.text.empty()) reasons[key] = end.text;
  parts.observer->on_message(message + (failed ? ", no retries left; log: " : ", started again; log: ") +
                             (job.folder / std::to_string(key.shard) / "log.txt").string());
}

// A server writes where it can be asked as soon as it answers.
void Controller::State::look_at_services() {
  const auto now = steady_clock::now();
  if (now < next_service_look) return;
  next_service_look = now + 300ms;
  for (std::uint32_t i = 0; i < live.size(); ++i) {
    if (live[i].spec->kind != "service" || reactor.stage(i) != run::StageState::kRunning || reactor.is_up(i))
      continue;
    const auto is_in_flight = [&](std::uint32_t job) { return reactor.job(job).in_flight > 0; };
    const std::vector<std::uint32_t> jobs_of_it = reactor.jobs_of(live[i].execution);
    const fs::path file = service_file(live[i].folder);
    if (std::none_of(jobs_of_it.begin(), jobs_of_it.end(), is_in_flight) || !path_exists(file)) continue;
    Json where;
    try {
      where = read_json_file(file);
    } catch (const Error&) {  // it went between the two: the server has ended
      continue;
    }
    say({.kind = run::EventKind::kServiceUp, .execution = live[i].execution});
    parts.observer->on_message("service " + live[i].spec->name + " is up: " + where.value("url", ""));
  }
}

void Controller::State::on_stage_failed_by_shards(std::uint32_t stage) {
  std::string why;
  for (const std::uint32_t job : reactor.jobs_of(live[stage].execution))
    for (std::uint32_t s = 0; s < reactor.job(job).shards && why.empty(); ++s)
      if (reactor.shard_failed({job, s})) {
        const run::ShardKey key{job, s};
        why = where(key) + " ended by " + std::string(to_string(reactor.last_cause(key))) + " after " +
              std::to_string(reactor.attempts(key)) + (reactor.attempts(key) == 1 ? " attempt" : " attempts");
        if (const auto reason = reasons.find(key); reason != reasons.end()) why += ": " + reason->second;
      }
  if (why.empty())
    for (const std::string& need : live[stage].spec->needs)
      if (const std::uint32_t other = stage_number.at(need); reactor.stage(other) == run::StageState::kFailed)
        why = "its service " + need + " has failed";
  fail_stage(stage, why);
}

}  // namespace warpsmith::controller
