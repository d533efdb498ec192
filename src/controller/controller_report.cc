// state.json: how far a run is, for `status` and for people; usage.json: what a stage's jobs took, for
// `plan`.
#include <unistd.h>

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

std::string Controller::State::where(run::ShardKey key) const {
  const run::JobView& view = reactor.job(key.job);
  return reactor.execution_key(view.execution).first + " " + std::to_string(view.round) + "/" + view.name +
         "/" + std::to_string(key.shard);
}

Json Controller::State::state_json() const {
  Json stages = Json::array();
  for (std::uint32_t i = 0; i < live.size(); ++i) {
    const LiveStage& one = live[i];
    Json stage = {{"stage", one.spec->name},
                  {"kind", one.spec->kind},
                  {"state", name_of(reactor.stage(i))},
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
    const bool runs = reactor.stage(i) == run::StageState::kRunning;
    if (one.ran)
      stage["seconds"] =
          runs ? std::chrono::duration<double>(std::chrono::steady_clock::now() - one.began).count()
               : one.seconds;
    if (runs) {
      Json open = Json::array();
      for (const std::uint32_t number : one.open_jobs) {
        const LiveJob& job = jobs.at(number);
        const run::JobView& view = reactor.job(number);
        std::uint64_t done = 0;
        for (std::uint32_t s = 0; s < view.shards; ++s) {
          const auto& range = job.file.shards[s];
          if (reactor.shard_done({number, s}))
            done += range.second - range.first;
          else if (running.contains({number, s}))
            done += std::min(records_so_far(job.folder / std::to_string(s)), range.second - range.first);
        }
        open.push_back({{"round", view.round},
                        {"job", view.name},
                        {"items", job.ids.size()},
                        {"done", done},
                        {"shards", view.shards},
                        {"shards_done", view.done},
                        {"shards_failed", view.failed},
                        {"shards_in_flight", view.in_flight}});
      }
      stage["jobs"] = std::move(open);
    }
    stages.push_back(std::move(stage));
  }
  const run::ExecutorView view = parts.executor->view();
  Json executor = view_json(view);
  for (const run::HeldShards& held : view.held) {
    const auto& execution = reactor.execution_key(reactor.job(held.job).execution);
    executor["held"].push_back({{"stage", execution.first}, {"tasks", held.tasks}, {"reason", held.reason}});
  }
  return {{"schema", "warpsmith.state/1"},
          {"run", parts.run.filename().string()},
          {"state", run_state},
          {"pid", ::getpid()},
          {"epoch", journal->epoch()},
          {"updated", std::time(nullptr)},
          {"seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count()},
          {"phase_s", phase_s},
          {"gpu_hours", gpu_s_used() / 3600},
          {"gpu_hours_asked", gpu_s_in_flight() / 3600},
          {"executor", std::move(executor)},
          {"stages", std::move(stages)}};
}

void Controller::State::write_usage(std::uint32_t stage) const {
  const LiveStage& one = live[stage];
  Json by_name = Json::object();
  for (const auto& [name, job] : usage.of(one.spec->name, one.execution)) {
    const auto program = one.programs.find(name);
    by_name[name] = {{"program", program == one.programs.end() ? "" : program->second},
                     {"jobs", job.jobs},
                     {"shards", job.shards},
                     {"attempts", job.attempts},
                     {"items", job.items},
                     {"timed_items", job.timed.items},
                     {"wall_s", job.timed.wall_s},
                     {"cpu_s", job.cpu_s},
                     {"gpu_s", job.gpu_s},
                     {"peak_memory_bytes", job.peak_memory_bytes}};
  }
  const Json file = {{"schema", "warpsmith.usage/1"},
                     {"stage", one.spec->name},
                     {"kind", one.spec->kind},
                     {"written", std::time(nullptr)},
                     {"jobs", std::move(by_name)}};
  try {
    write_file_atomic(one.folder / "usage.json", file.dump(2) + "\n");
  } catch (const Error& e) {  // only estimates go without it
    parts.observer->on_message(e.what());
  }
}

void Controller::State::report(bool now) {
  if (!any_ran) return;  // what an earlier life left there still holds
  const auto time = std::chrono::steady_clock::now();
  if (!now && time - last_report < kReportEvery) return;
  last_report = time;
  const Json state = state_json();
  write_file_atomic(parts.run / "state.json", state.dump() + "\n");
  parts.observer->on_state(state);
}

}  // namespace warpsmith::controller
