// state.json: how far a run is, for `status` and for people.
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "controller_state.h"
#include "warpsmith/base/error.h"
#include "warpsmith/workflow/devices.h"

namespace warpsmith::controller {

namespace {

constexpr auto kReportEvery = std::chrono::seconds(1);

std::string_view name_of(run::StageState state) {
  switch (state) {
    case run::StageState::kWaiting:
      return "waiting";
    case run::StageState::kRunning:
      return "running";
    case run::StageState::kFinished:
      return "finished";
    case run::StageState::kFailed:
      return "failed";
    case run::StageState::kBlocked:
      return "blocked";
  }
  return "";
}

Json view_json(const run::ExecutorView& view) {
  Json json = Json::object();
  if (!view.shards.empty()) json["shards"] = view.shards;
  if (!view.gpus.empty()) json["gpus"] = view.gpus;
  if (view.next_start > 0) json["next_start"] = view.next_start;
  if (!view.trouble.empty()) json["trouble"] = view.trouble;
  if (view.requests > 0) json["requests"] = view.requests;
  return json;
}

// Of a shard at work, for people: a file that cannot be read is told of when the shard has ended.
std::uint64_t records_so_far(const fs::path& shard_folder) {
  try {
    return count_records(shard_folder);
  } catch (const Error&) {
    return 0;
  }
}

}  // namespace

Json Controller::State::job_json(std::uint32_t number) const {
  const LiveJob& job = shards.jobs().at(number);
  const run::JobView& view = core.reactor.job(number);
  std::uint64_t done = 0;
  for (std::uint32_t s = 0; s < view.shards; ++s) {
    const auto& range = job.file.shards[s];
    if (core.reactor.shard_done({number, s}))
      done += range.second - range.first;
    else if (shards.is_running({number, s}))
      done += std::min(records_so_far(job.folder / std::to_string(s)), range.second - range.first);
  }
  return {{"round", view.round},          {"job", view.name},
          {"items", job.ids.size()},      {"done", done},
          {"shards", view.shards},        {"shards_done", view.done},
          {"shards_failed", view.failed}, {"shards_in_flight", view.in_flight}};
}

Json Controller::State::stage_json(std::uint32_t number) const {
  const LiveStage& one = stages.stages()[number];
  const run::StageState state = core.reactor.stage(number);
  Json stage = {{"stage", one.spec->name},
                {"kind", one.spec->kind},
                {"state", name_of(state)},
                {"hash", one.plan.hash},
                {"hash8", one.folder.filename().string()},  // of the version that counts; empty: none yet
                {"action", to_string(one.plan.action)},
                {"reason", one.plan.reason},
                {"ran", one.ran},
                {"progress", one.progress}};
  if (const auto before = earlier.find(one.spec->name);
      !one.ran && before != earlier.end() && before->second.value("hash", "") == one.plan.hash) {
    stage["progress"] = before->second.value("progress", Json::object());
    stage["seconds"] = before->second.value("seconds", 0.0);
  }
  if (!one.spec->wanted_device.empty()) {
    stage["device"] = one.spec->wanted_device;
    stage["device_found"] = to_string(one.spec->device_found);
  }
  if (!one.failure.empty()) stage["failure"] = one.failure;
  const bool runs = state == run::StageState::kRunning;
  if (one.ran)
    stage["seconds"] =
        runs ? std::chrono::duration<double>(std::chrono::steady_clock::now() - one.began).count()
             : one.seconds;
  if (runs) {
    stage["jobs"] = Json::array();
    for (const std::uint32_t job : one.open_jobs) stage["jobs"].push_back(job_json(job));
  }
  return stage;
}

Json Controller::State::state_json() const {
  Json all = Json::array();
  for (std::uint32_t i = 0; i < stages.stages().size(); ++i) all.push_back(stage_json(i));
  const run::ExecutorView view = core.parts.executor->view();
  Json executor = view_json(view);
  for (const run::HeldShards& held : view.held) {
    const auto& execution = core.reactor.execution_key(core.reactor.job(held.job).execution);
    executor["held"].push_back({{"stage", execution.first}, {"tasks", held.tasks}, {"reason", held.reason}});
  }
  return {{"schema", "warpsmith.state/1"},
          {"run", core.parts.run.filename().string()},
          {"state", run_state},
          {"pid", ::getpid()},
          {"epoch", journal->epoch()},
          {"updated", std::time(nullptr)},
          {"seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count()},
          {"phase_s", core.phase_s},
          {"gpu_hours", gpu_s_used() / 3600},
          {"gpu_hours_asked", gpu_s_in_flight() / 3600},
          {"executor", std::move(executor)},
          {"stages", std::move(all)}};
}

void Controller::State::report(bool now) {
  const bool any_ran = std::any_of(stages.stages().begin(), stages.stages().end(),
                                   [](const LiveStage& one) { return one.ran; });
  if (!any_ran && !at_end) return;  // what an earlier life left there still holds
  const auto time = std::chrono::steady_clock::now();
  if (!now && time - last_report < kReportEvery) return;
  last_report = time;
  stages.note_running_steps();
  const Json state = state_json();
  write_file_atomic(core.parts.run / "state.json", state.dump() + "\n");
  core.parts.observer->on_state(state);
  write_prometheus(now);
}

}  // namespace warpsmith::controller
