// What metrics.jsonl is told of stages: rounds and stages that have ended, optimiser steps.
#include <algorithm>
#include <chrono>

#include "stage_driver.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/records/shard.h"

namespace warpsmith::controller {

namespace {

// Since 1970.
double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::optional<std::uint32_t> StageDriver::execution_of(std::uint32_t stage) const {
  const LiveStage& one = live_[stage];
  if (one.ran) return one.execution;
  if (!core_.reactor.has_execution(one.spec->name, one.plan.result)) return std::nullopt;
  return core_.reactor.execution_number(one.spec->name, one.plan.result);
}

// Time and GPU seconds are the journal's: a row that is noted later has the same.
MetricRow StageDriver::metric_place(std::uint32_t stage, const char* kind, int round) const {
  const LiveStage& one = live_[stage];
  MetricRow row{
      .stage = one.spec->name, .hash8 = one.folder.filename().string(), .kind = kind, .round = round};
  std::uint64_t ended_ms = 0;
  double gpu_s = 0;
  if (const auto execution = execution_of(stage))
    for (const auto& [number, usage] : core_.usage.rounds(*execution)) {
      if (row.kind != kStageRow && number != round) continue;
      ended_ms = std::max(ended_ms, usage.ended_ms);
      gpu_s += usage.gpu_s;
    }
  if (row.kind != kStepRow) row.gpu_s = gpu_s;
  row.time = ended_ms > 0 ? static_cast<double>(ended_ms) / 1000 : seconds_now();
  return row;
}

void StageDriver::note_figures(std::uint32_t stage, const char* kind, int round, const Json& figures) {
  if (!figures.is_object() || (kind == kStepRow && !figures.contains("loss"))) return;
  if (const auto row = metric_row(metric_place(stage, kind, round), figures)) core_.metrics.add(*row);
}

void StageDriver::note_running_steps() {
  for (const auto& [number, job] : shards_.jobs()) {
    if (kind_of_job(job.file.job) != "train") continue;
    for (std::uint32_t s = 0; s < job.file.shards.size(); ++s) {
      if (!shards_.is_running({number, s})) continue;
      MetricRow place = metric_place(job.stage, kStepRow, job.file.round);
      place.time = seconds_now();
      core_.metrics.add_steps_so_far(place, job.folder / std::to_string(s));
    }
  }
}

void StageDriver::note_device_times(const stages::JobResult& result) {
  for (const stages::ItemResult& item : result.items) try {
      if (!item.record.is_object() || !item.record.contains("gpu_held_s")) continue;
      const Json& device = item.record.at("device");
      DeviceTime& time = device_times_[device.at("uuid").get<std::string>()];
      time.kind = device.value("kind", "");
      time.held_s += item.record.at("gpu_held_s").get<double>();
      time.timed_s += item.record.value("gpu_timed_s", 0.0);
    } catch (const Json::exception&) {  // its stage says what is wrong with it
    }
}

// Mostly its rows are there: of a run of an earlier version, or where somebody has removed the file, they are
// made from what the stage left.
void StageDriver::note_earlier(std::uint32_t stage) {
  const LiveStage& one = live_[stage];
  if (one.spec->kind == "service" || core_.metrics.has(metric_place(stage, kStageRow, 0))) return;
  try {
    if (const auto execution = execution_of(stage))
      for (const std::uint32_t number : core_.reactor.jobs_of(*execution)) {
        const run::JobView& job = core_.reactor.job(number);
        if (kind_of_job(job.name) != "train") continue;
        const fs::path folder = job_folder(one.folder, job.round, job.name);
        for (std::uint32_t s = 0; s < job.shards; ++s)
          scan_shard_records(
              folder / std::to_string(s),
              [&](Json&& record, const fs::path&) { note_figures(stage, kStepRow, job.round, record); },
              [](const Error&) {});
      }
    const Json output = read_json_file(one.output_file);
    if (const auto rounds = output.find("rounds"); rounds != output.end())
      for (const Json& round : *rounds) note_figures(stage, kRoundRow, round.value("round", 0), round);
    note_figures(stage, kStageRow, 0, output.value("summary", Json::object()));
  } catch (const std::exception& e) {  // whoever needs the output says so, too
    core_.tell(one.output_file.string() + ": metrics.jsonl goes without it: " + e.what());
  }
}

}  // namespace warpsmith::controller
