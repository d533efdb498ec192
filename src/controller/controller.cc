#include "warpsmith/controller/controller.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "controller_state.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/untrusted.h"

namespace warpsmith::controller {

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kLongestPoll = 200ms;  // so that Ctrl-C is heard

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
                        .max_jobs = stage.max_jobs,
                        .is_service = stage.kind == "service"};
    for (const std::string& need : stage.needs) {
      const std::uint32_t number = numbers.at(need);
      (rules[number].is_service ? one.uses : one.needs).push_back(number);
    }
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
  journal.emplace(parts.run, [&](run::Event&& e) {
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
    unsaid_gpu_s += wall_s * job_on_disk(job).file.resources.gpus_held();
  job_files.clear();
  commit();
}

std::string Controller::State::token_of(const JobFile& file, std::uint32_t submission) const {
  return file.token + "-" + std::to_string(submission);
}

void Controller::State::note(run::Event event) {
  journal->note(event);
  usage.take(event);
}

void Controller::State::say(run::Event event) {
  note(event);
  reactor.apply(event);
}

void Controller::State::commit() { journal->commit(*parts.executor); }

void Controller::State::submit(const std::vector<run::ShardRange>& ranges) {
  for (const run::ShardRange& range : ranges) {
    const LiveJob& job = jobs.at(range.job);
    ++submissions;
    if (live[job.stage].spec->kind == "service") fs::remove(job.folder / kServiceFile);  // an earlier life's
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
          .shards_a_gpu = start.resources.shards_a_gpu > 1 ? start.resources.shards_a_gpu : 0,
          .time_s = start.resources.time_s,
          .memory = start.resources.memory_bytes,
          .text = start.resources.gpu_type});
    for (std::uint32_t s = range.begin; s < range.end; ++s) {
      start.key.shard = s;
      start.log = job.folder / std::to_string(s) / "log.txt";  // its folder appears when it starts
      journal->hand_over_later(start);
    }
  }
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
      journal->write();
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
  journal->forget_waiting();
  journal->write();
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
    out += reactor.job(number).in_flight * job.resources.time_s * job.resources.gpus_held();
  return out;
}

// With a budget no more shards than it pays for, each taken at its time limit.
std::size_t Controller::State::room() {
  const std::size_t capacity = parts.executor->capacity();
  const double budget_s = parts.spec->budget.gpu_hours * 3600;
  if (budget_s <= 0 || over_budget) return over_budget ? 0 : capacity;
  double dearest = 0;
  for (const auto& [number, job] : jobs)  // that have shards to submit
    if (const run::JobView& view = reactor.job(number);
        view.done + view.failed + view.in_flight < view.shards)
      dearest = std::max(dearest, job.resources.time_s * job.resources.gpus_held());
  if (dearest <= 0) return capacity;
  const double left = std::max(0.0, budget_s - gpu_s_used() - gpu_s_in_flight());
  const std::size_t affordable = static_cast<std::size_t>(std::min(left / dearest, 1e9));
  if (affordable == 0 && reactor.in_flight() == reactor.services_in_flight()) {
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
    look_at_services();
    if (quiet && reactor.at_end()) return outcome(false);
    if (parts.interrupted()) return outcome(true);
    if (over_budget && reactor.in_flight() == reactor.services_in_flight()) return outcome(false);
    if (publish_soon) publish_if_due();

    // A commit can wait for company unless a CPU waits for it.
    const std::size_t at_work = reactor.in_flight() - std::min(reactor.in_flight(), journal->waiting());
    const bool urgent = journal->waiting() > 0 && at_work < static_cast<std::size_t>(parts.slots);
    if (journal->pending() && (urgent || journal->may_wait() == 0ms)) commit();
    report(false);
    if (!quiet) continue;
    const auto wait =
        journal->pending() ? std::max(journal->may_wait(), 1ms) : std::chrono::milliseconds(kLongestPoll);
    for (const run::ShardEvent& event : parts.executor->poll(wait)) on_event(event);
  }
}

Controller::Controller(ControllerParts parts) : state_(std::make_unique<State>(std::move(parts))) {}
Controller::~Controller() = default;
RunOutcome Controller::run() { return state_->run(); }

}  // namespace warpsmith::controller
