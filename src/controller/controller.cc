#include "warpsmith/controller/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller_state.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/untrusted.h"

namespace warpsmith::controller {

namespace {

using namespace std::chrono_literals;

constexpr auto kLongestPoll = 200ms;  // so that Ctrl-C is heard
constexpr std::chrono::steady_clock::duration kPublishPause = 30s;

}  // namespace

void Publisher::if_due() {
  const auto before = std::chrono::steady_clock::now();
  if (before - last_ <= (soon_ ? kPublishPause : pause_)) return;
  soon_ = false;
  publish_();
  last_ = std::chrono::steady_clock::now();
  pause_ = std::max<std::chrono::steady_clock::duration>(2min, 20 * (last_ - before));
}

Controller::State::State(ControllerParts given)
    : core(std::move(given)),
      publisher(core.parts.publish),
      stages(core, shards,
             {.changed = [this](bool now) { report(now); },
              .result =
                  [this](bool finished) {
                    if (finished)
                      publisher.soon();
                    else
                      publisher.if_due();
                  }}) {
  use_json_or_set_aside(
      core.parts.run / "state.json",
      [&](const Json& state) {
        for (const Json& stage : state.value("stages", Json::array())) {
          Json kept = {{"hash", stage.value("hash", "")},
                       {"progress", stage.value("progress", Json::object_t{})},
                       {"seconds", stage.value("seconds", 0.0)}};
          earlier.emplace(stage.value("stage", ""), std::move(kept));
        }
      },
      [&](const std::string& message) { core.tell(message); });
  journal.emplace(core.parts.run, [&](run::Event&& e) {
    core.reactor.apply(e);
    core.usage.take(e);
    if (e.kind == run::EventKind::kShardEnded) core.phase_s[core.reactor.job(e.job).name] += e.wall_s;
    shards.replay(e);
  });
  core.log = &*journal;
  core.reactor.apply({.kind = run::EventKind::kOpened});
  shards.resolve_unfinished();
  unsaid_gpu_s = shards.unsaid_gpu_s();
  commit();
}

// Orderly: children end, and what they left undone is in the journal as cancelled; or they are left alone.
void Controller::State::end_everything() {
  if (run_state == "detached") {
    core.parts.executor->detach();
  } else {
    try {
      core.parts.executor->shut_down();
    } catch (const Error&) {  // in the journal they stay in flight: whoever goes on looks for them
      core.note({.kind = run::EventKind::kClosed, .text = run_state});
      journal->write();
      throw;
    }
    shards.end_all();
  }
  core.note({.kind = run::EventKind::kClosed, .text = run_state});
  journal->forget_waiting();
  journal->write();
}

RunOutcome Controller::State::outcome(bool interrupted) {
  RunOutcome out;
  bool ran = false;
  for (std::uint32_t i = 0; i < stages.stages().size(); ++i) {
    const LiveStage& one = stages.stages()[i];
    ran |= one.ran;
    if (core.reactor.stage(i) == run::StageState::kFailed) out.failed.push_back(one.spec->name);
    if (core.reactor.stage(i) == run::StageState::kBlocked) out.blocked.push_back(one.spec->name);
  }
  out.environment = shards.disk_was_full();
  out.kind = interrupted           ? RunOutcome::Kind::kInterrupted
             : !out.failed.empty() ? RunOutcome::Kind::kFailed
             : over_budget         ? RunOutcome::Kind::kOverBudget
             : ran                 ? RunOutcome::Kind::kFinished
                                   : RunOutcome::Kind::kNothingToDo;
  if (interrupted && core.parts.executor->outlives() && core.parts.detach())
    out.kind = RunOutcome::Kind::kDetached;
  run_state = out.kind == RunOutcome::Kind::kDetached ? "detached"
              : interrupted                           ? "interrupted"
              : !out.failed.empty()                   ? "failed"
              : over_budget                           ? "over budget"
                                                      : "finished";
  end_everything();
  for (std::uint32_t i = 0; i < stages.stages().size(); ++i)
    if (const LiveStage& one = stages.stages()[i];
        one.ran && (core.reactor.stage(i) != run::StageState::kFinished || one.spec->kind == "service"))
      stages.write_usage(i);
  at_end = true;
  report(true);
  out.state = state_json();
  out.gpu_hours = gpu_s_used() / 3600;
  return out;
}

double Controller::State::gpu_s_in_flight() const {
  double out = 0;
  for (const auto& [number, job] : shards.jobs())
    out += core.reactor.job(number).in_flight * job.resources.time_s * job.resources.gpus_held();
  return out;
}

// With a budget no more shards than it pays for, each taken at its time limit.
std::size_t Controller::State::room() {
  const std::size_t capacity = core.parts.executor->capacity();
  const double budget_s = core.parts.spec->budget.gpu_hours * 3600;
  if (budget_s <= 0 || over_budget) return over_budget ? 0 : capacity;
  double dearest = 0;
  for (const auto& [number, job] : shards.jobs())  // that have shards to submit
    if (const run::JobView& view = core.reactor.job(number);
        view.done + view.failed + view.in_flight < view.shards)
      dearest = std::max(dearest, job.resources.time_s * job.resources.gpus_held());
  if (dearest <= 0) return capacity;
  const double left = std::max(0.0, budget_s - gpu_s_used() - gpu_s_in_flight());
  const std::size_t affordable = static_cast<std::size_t>(std::min(left / dearest, 1e9));
  if (affordable == 0 && core.reactor.in_flight() == core.reactor.services_in_flight()) {
    over_budget = true;
    core.tell(fmt::format(
        "the budget of {:.3g} GPU-hours is used up ({:.3g} used, the next shard may take {:.3g}): the run "
        "stops; with a larger `budget` it goes on",
        budget_s / 3600, gpu_s_used() / 3600, dearest / 3600));
    core.reactor.stop();
  }
  return std::min(capacity, core.reactor.in_flight() + affordable);
}

RunOutcome Controller::State::run() {
  run::Reactor& reactor = core.reactor;
  stages.select();
  for (;;) {
    const run::Commands commands = reactor.next(room());
    for (const std::uint32_t stage : commands.failed) stages.fail_by_shards(stage);
    if (!commands.cancel.empty()) {
      commit();  // what is to be cancelled may wait for its submission here
      core.parts.executor->cancel(commands.cancel);
    }
    shards.submit(commands.submit);
    for (const std::uint32_t job : commands.done) stages.feed(job);
    for (const std::uint32_t stage : commands.start) stages.begin(stage);
    const bool quiet = commands.empty();
    if (quiet) shards.cancel_orphans();
    shards.look_at_early();
    shards.look_at_late();
    services.look(std::chrono::steady_clock::now());
    if (quiet && reactor.at_end()) return outcome(false);
    if (core.parts.interrupted()) return outcome(true);
    if (over_budget && reactor.in_flight() == reactor.services_in_flight()) return outcome(false);
    if (publisher.is_soon()) publisher.if_due();

    // A commit can wait for company unless a CPU waits for it.
    const std::size_t at_work = reactor.in_flight() - std::min(reactor.in_flight(), journal->waiting());
    const bool urgent = journal->waiting() > 0 && at_work < static_cast<std::size_t>(core.parts.slots);
    if (journal->pending() && (urgent || journal->may_wait() == 0ms)) commit();
    report(false);
    if (!quiet) continue;
    const auto wait =
        journal->pending() ? std::max(journal->may_wait(), 1ms) : std::chrono::milliseconds(kLongestPoll);
    for (const run::ShardEvent& event : core.parts.executor->poll(wait)) shards.on_event(event);
  }
}

Controller::Controller(ControllerParts parts) : state_(std::make_unique<State>(std::move(parts))) {}
Controller::~Controller() = default;
RunOutcome Controller::run() { return state_->run(); }

}  // namespace warpsmith::controller
