#include "warpsmith/cli/controller.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "controller_state.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/text.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/records/done_shards.h"

namespace warpsmith::cli {

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kGroup = 50ms;         // events within it are one append and one fsync
constexpr auto kLongestPoll = 200ms;  // so that Ctrl-C is heard

std::uint64_t now_ms() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

// Where the shards of a stage's jobs go: place 0 is the CPU's, the others are in the order of `gpus`.
std::map<std::string, std::uint32_t> places_of(const workflow::StageSpec& stage,
                                               const std::map<std::string, std::size_t>& gpus) {
  std::map<std::string, std::uint32_t> places;
  for (const stages::PlannedJob& job : stages::planned_jobs(stage, {})) {
    const auto type = gpus.find(job.resources.gpu_type);
    places[job.job] = job.resources.gpus == 0 || type == gpus.end()
                          ? 0
                          : 1 + static_cast<std::uint32_t>(std::distance(gpus.begin(), type));
  }
  return places;
}

// Items of a shard without a record. A record counts where its item stands; one of another place is no slip
// of a number, but of a program that mixes its items up.
std::uint32_t count_open_items(const fs::path& shard_folder, const std::vector<std::string>& ids,
                               std::pair<std::uint64_t, std::uint64_t> range) {
  std::unordered_map<std::string_view, std::uint64_t> open;
  for (std::uint64_t i = range.first; i < range.second; ++i) open.emplace(ids[i], i);
  scan_shard_records(shard_folder, [&](Json&& record, const fs::path& attempt) {
    const std::string& item = record["item"].get_ref<const std::string&>();
    const auto found = open.find(item);
    if (found == open.end()) return;
    const auto index = record.find("index");
    if (index != record.end() && index->get<std::uint64_t>() != found->second)
      throw BadContent(attempt / "records.jsonl", (attempt / "records.jsonl").string() + ": the record of " +
                                                      item + " has the index " + index->dump() +
                                                      ", its item " + std::to_string(found->second));
    open.erase(found);
  });
  return static_cast<std::uint32_t>(open.size());
}

// The same once the shard has ended. Files of records that are no such are renamed, so that the shard can be
// run again, and `problem` says of them what is wrong.
std::uint32_t settle_open_items(const fs::path& shard_folder, const std::vector<std::string>& ids,
                                std::pair<std::uint64_t, std::uint64_t> range, std::string& problem) {
  for (;;) try {
      return count_open_items(shard_folder, ids, range);
    } catch (const BadContent& e) {
      problem +=
          (problem.empty() ? "" : "; ") + std::string(e.what()) + " (" + set_aside_damaged(e.path()) + ")";
      std::error_code error;
      if (fs::symlink_status(e.path(), error).type() != fs::file_type::not_found)
        return static_cast<std::uint32_t>(range.second - range.first);
    }
}

}  // namespace

run::Reactor make_reactor(const ControllerParts& parts) {
  const workflow::WorkflowSpec& spec = *parts.spec;
  std::map<std::string, std::uint32_t> numbers;
  std::vector<run::StageRules> rules;
  std::vector<std::size_t> sizes;
  if (!parts.gpus.empty()) sizes.push_back(std::numeric_limits<std::size_t>::max());  // CPUs are not scarce
  for (const auto& [type, count] : parts.gpus) sizes.push_back(count);
  for (const workflow::StageSpec& stage : spec.stages) {
    run::StageRules one{.name = stage.name,
                        .needs = {},
                        .retry = stage.retry,
                        .tolerate = stage.tolerate,
                        .max_jobs = stage.max_jobs};
    for (const std::string& need : stage.needs) one.needs.push_back(numbers.at(need));
    if (!parts.gpus.empty()) one.places = places_of(stage, parts.gpus);
    numbers.emplace(stage.name, static_cast<std::uint32_t>(rules.size()));
    rules.push_back(std::move(one));
  }
  return run::Reactor(std::move(rules), std::move(sizes));
}

Controller::State::State(ControllerParts given) : parts(std::move(given)), reactor(make_reactor(parts)) {
  parts.run = fs::absolute(parts.run).lexically_normal();
  for (const workflow::StageSpec& stage : parts.spec->stages) {
    stage_number.emplace(stage.name, static_cast<std::uint32_t>(live.size()));
    live.push_back({});
    live.back().spec = &stage;
  }
  digests = plan::digest_datasets(*parts.spec);
  use_json_or_set_aside(
      parts.run / "state.json",
      [&](const Json& state) {
        for (const Json& stage : state.value("stages", Json::array())) {
          Json kept = {{"hash", stage.value("hash", "")},
                       {"progress", stage.value("progress", Json::object_t{})},
                       {"seconds", stage.value("seconds", 0.0)}};
          earlier.emplace(stage.value("stage", ""), std::move(kept));
        }
      },
      [&](const std::string& message) { parts.observer->on_message(message); });
  run::Event opened{
      .time_ms = now_ms(), .pid = static_cast<std::uint32_t>(::getpid()), .text = process::host_name()};
  journal = std::make_unique<run::Journal>(parts.run / "journal", opened, [&](run::Event&& e) {
    reactor.apply(e);
    usage.take(e);
    if (e.kind == run::EventKind::kShardEnded) phase_s[reactor.job(e.job).name] += e.wall_s;
    if (e.kind != run::EventKind::kSubmitted) return;
    submissions = std::max(submissions, e.submission);
    earlier_submissions[e.job].push_back({e.shard, e.end, e.submission});
  });
  reactor.apply({.kind = run::EventKind::kOpened});
  resolve_unfinished();
  earlier_submissions.clear();
  for (const auto& [job, wall_s] : usage.unsaid_s())
    unsaid_gpu_s += wall_s * job_on_disk(job).file.resources.gpus;
  job_files.clear();
  commit();
}

const Controller::State::JobOnDisk& Controller::State::job_on_disk(std::uint32_t job) {
  const auto found = job_files.find(job);
  if (found != job_files.end()) return found->second;
  const run::JobView& view = reactor.job(job);
  const auto& [name, hash] = reactor.execution_key(view.execution);
  JobOnDisk one{.folder = job_folder(stage_folder(parts.run, name, hash), view.round, view.name)};
  if (fs::exists(one.folder / "job.json")) one.file = read_job_file(one.folder / "job.json");
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
  const std::uint32_t open = settle_open_items(folder / std::to_string(key.shard), ids, range, problem);
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

std::string Controller::State::token_of(const JobFile& file, std::uint32_t submission) const {
  return file.token + "-" + std::to_string(submission);
}

void Controller::State::note(run::Event event) {
  event.time_ms = now_ms();
  if (!journal->pending()) oldest_pending = steady_clock::now();
  journal->add(event);
  usage.take(event);
}

void Controller::State::say(run::Event event) {
  note(event);
  reactor.apply(event);
}

void Controller::State::write_done_shards() {
  for (const auto& [job, shards] : std::exchange(done_unwritten, {}))
    append_done_shards(jobs.at(job).folder, shards);
}

// What the journal says is done must be on disk as well.
void Controller::State::write_journal() {
  write_done_shards();
  journal->commit();
}

void Controller::State::commit() {
  write_journal();
  if (waiting.empty()) return;
  if (journal->superseded())
    throw Error("another controller has taken over the run " + parts.run.string() + "; this one stops",
                kExitBusy);
  parts.executor->submit(waiting);
  waiting.clear();
}

void Controller::State::submit(const std::vector<run::ShardRange>& ranges) {
  for (const run::ShardRange& range : ranges) {
    const LiveJob& job = jobs.at(range.job);
    ++submissions;
    run::ShardStart start{.key = {range.job, 0},
                          .job_file = job.folder / "job.json",
                          .program = job.program,
                          .arguments = job.file.arguments,
                          .log = {},
                          .resources = job.resources,
                          .token = token_of(job.file, submissions)};
    start.resources.memory_bytes =
        static_cast<std::uint64_t>(static_cast<double>(job.resources.memory_bytes) *
                                   std::pow(live[job.stage].spec->retry.memory_factor, range.memory_retries));
    note({.kind = run::EventKind::kSubmitted,
          .job = range.job,
          .shard = range.begin,
          .end = range.end,
          .submission = submissions,
          .cpus = std::max(1, start.resources.cpus),
          .gpus = start.resources.gpus,
          .time_s = start.resources.time_s,
          .memory = start.resources.memory_bytes,
          .text = start.resources.gpu_type});
    for (std::uint32_t s = range.begin; s < range.end; ++s) {
      start.key.shard = s;
      start.log = job.folder / std::to_string(s) / "log.txt";  // its folder appears when it starts
      waiting.push_back(start);
    }
  }
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
        done_unwritten[end.key.job].push_back(end.key.shard);
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
  const auto& range = job.file.shards.at(key.shard);
  if (job.done.contains(key.shard)) return 0;
  try {
    return count_open_items(job.folder / std::to_string(key.shard), job.ids, range);
  } catch (const BadContent&) {  // once the shard has ended it is told, and mended
    return static_cast<std::uint32_t>(range.second - range.first);
  }
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
  std::uint32_t open = known_open ? *known_open : open_items_of(key);
  std::string problem;  // of its records
  if (open > 0 && !keeps_no_records(job.file))
    open = settle_open_items(job.folder / std::to_string(key.shard), job.ids, job.file.shards.at(key.shard),
                             problem);
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
                        (cause == EndCause::kFinished ? std::string("ended without a record for every item")
                                                      : std::string(to_string(cause)));
  if (end.signal != 0) message += " (signal " + std::to_string(end.signal) + ")";
  if (end.exit_code != 0) message += " (exit code " + std::to_string(end.exit_code) + ")";
  if (!end.text.empty()) message += ": " + end.text;
  message += ", " + std::to_string(open) + " of " +
             std::to_string(job.file.shards[key.shard].second - job.file.shards[key.shard].first) +
             " items left";
  const bool failed = reactor.shard_failed(key);
  if (failed && cause == EndCause::kDiskFull) environment = true;
  if (failed && !end.text.empty()) reasons[key] = end.text;
  parts.observer->on_message(message + (failed ? ", no retries left; log: " : ", started again; log: ") +
                             (job.folder / std::to_string(key.shard) / "log.txt").string());
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
  fail_stage(stage, why);
}

// Orderly: children end, and what they left undone is in the journal as cancelled; or they are left alone.
void Controller::State::end_everything() {
  if (run_state == "detached") {
    parts.executor->detach();
  } else {
    try {
      parts.executor->shut_down();
    } catch (const Error&) {  // in the journal they stay in flight: whoever goes on looks for them
      note({.kind = run::EventKind::kClosed, .text = run_state});
      write_journal();
      throw;
    }
    // What they took until then counts; a cluster is not asked once more for it.
    if (!parts.executor->outlives() && !reactor.unresolved().empty())
      for (const run::ShardEvent& event : parts.executor->poll(0ms))
        if (event.kind == run::ShardEvent::Kind::kEnded) on_event(event);
    for (const run::ShardKey key : reactor.unresolved()) {
      if (jobs.contains(key.job))
        on_shard_end(key, EndCause::kCancelled, nullptr);
      else
        end_unknown(key);
    }
  }
  note({.kind = run::EventKind::kClosed, .text = run_state});
  waiting.clear();
  write_journal();
}

RunOutcome Controller::State::outcome(bool interrupted) {
  RunOutcome out;
  bool ran = false;
  for (std::uint32_t i = 0; i < live.size(); ++i) {
    ran |= live[i].ran;
    if (reactor.stage(i) == run::StageState::kFailed) out.failed.push_back(live[i].spec->name);
    if (reactor.stage(i) == run::StageState::kBlocked) out.blocked.push_back(live[i].spec->name);
  }
  out.environment = environment;
  out.kind = interrupted           ? RunOutcome::Kind::kInterrupted
             : !out.failed.empty() ? RunOutcome::Kind::kFailed
             : over_budget         ? RunOutcome::Kind::kOverBudget
             : ran                 ? RunOutcome::Kind::kFinished
                                   : RunOutcome::Kind::kNothingToDo;
  if (interrupted && parts.executor->outlives() && parts.detach()) out.kind = RunOutcome::Kind::kDetached;
  run_state = out.kind == RunOutcome::Kind::kDetached ? "detached"
              : interrupted                           ? "interrupted"
              : !out.failed.empty()                   ? "failed"
              : over_budget                           ? "over budget"
                                                      : "finished";
  end_everything();
  for (std::uint32_t i = 0; i < live.size(); ++i)
    if (live[i].ran && reactor.stage(i) != run::StageState::kFinished) write_usage(i);
  any_ran = true;  // the last word is written in any case
  report(true);
  out.state = state_json();
  out.gpu_hours = gpu_s_used() / 3600;
  return out;
}

double Controller::State::gpu_s_in_flight() const {
  double out = 0;
  for (const auto& [number, job] : jobs)
    out += reactor.job(number).in_flight * job.resources.time_s * job.resources.gpus;
  return out;
}

// With a budget no more shards than it pays for, each taken at its time limit.
std::size_t Controller::State::room() {
  const std::size_t capacity = parts.executor->capacity();
  const double budget_s = parts.spec->budget.gpu_hours * 3600;
  if (budget_s <= 0 || over_budget) return over_budget ? 0 : capacity;
  double dearest = 0;
  for (const auto& [number, job] : jobs)
    dearest = std::max(dearest, job.resources.time_s * job.resources.gpus);
  if (dearest <= 0) return capacity;
  const double left = std::max(0.0, budget_s - gpu_s_used() - gpu_s_in_flight());
  const std::size_t affordable = static_cast<std::size_t>(std::min(left / dearest, 1e9));
  if (affordable == 0 && reactor.in_flight() == 0) {
    over_budget = true;
    parts.observer->on_message(fmt::format(
        "the budget of {:.3g} GPU-hours is used up ({:.3g} used, the next shard may take {:.3g}): the run "
        "stops; with a larger `budget` it goes on",
        budget_s / 3600, gpu_s_used() / 3600, dearest / 3600));
    reactor.stop();
  }
  return std::min(capacity, reactor.in_flight() + affordable);
}

RunOutcome Controller::State::run() {
  select();
  for (;;) {
    const run::Commands commands = reactor.next(room());
    for (const std::uint32_t stage : commands.failed) on_stage_failed_by_shards(stage);
    if (!commands.cancel.empty()) {
      commit();  // what is to be cancelled may wait for its submission here
      parts.executor->cancel(commands.cancel);
    }
    submit(commands.submit);
    for (const std::uint32_t job : commands.done) feed_job(job);
    for (const std::uint32_t stage : commands.start) begin_stage(stage);
    const bool quiet = commands.empty();
    if (quiet && attached) cancel_orphans();
    for (const run::ShardEvent& event : std::exchange(early, {})) on_event(event);
    look_at_late_records();
    if (quiet && reactor.at_end()) return outcome(false);
    if (parts.interrupted()) return outcome(true);
    if (over_budget && reactor.in_flight() == 0) return outcome(false);
    if (publish_soon) publish_if_due();

    // A commit can wait for company unless a CPU waits for it.
    const std::size_t at_work = reactor.in_flight() - std::min(reactor.in_flight(), waiting.size());
    const bool urgent = !waiting.empty() && at_work < static_cast<std::size_t>(parts.slots);
    const auto age = steady_clock::now() - oldest_pending;
    if (journal->pending() && (urgent || age >= kGroup)) commit();
    report(false);
    if (!quiet) continue;
    const auto wait = journal->pending()
                          ? std::max(std::chrono::duration_cast<std::chrono::milliseconds>(kGroup - age), 1ms)
                          : std::chrono::milliseconds(kLongestPoll);
    for (const run::ShardEvent& event : parts.executor->poll(wait)) on_event(event);
  }
}

Controller::Controller(ControllerParts parts) : state_(std::make_unique<State>(std::move(parts))) {}
Controller::~Controller() = default;
RunOutcome Controller::run() { return state_->run(); }

}  // namespace warpsmith::cli
