#include "services.h"

#include <fmt/format.h>

#include <algorithm>

#include "warpsmith/base/error.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/text.h"

namespace warpsmith::controller {

namespace {

bool may_run(const plan::StagePlan& plan) {
  return plan.action != plan::Action::kUpToDate && plan.action != plan::Action::kAccept &&
         plan.action != plan::Action::kNotSelected;
}

// What several services hold together.
struct Held : Room {
  std::string names;
};

// Empty: the job finds room beside them.
std::string no_room(const Held& held, const Resources& r, const Room& room) {
  if (room.shards > 0 && held.shards + 1 > room.shards)
    return fmt::format(
        "service {} has {} of the {} jobs that this user may have in the queue, and each shard is one",
        held.names, held.shards, room.shards);
  if (held.cpus + std::max(1, r.cpus) > room.cpus)
    return fmt::format("service {} has {} of this machine's {} CPUs, and {} are asked for beside it",
                       held.names, held.cpus, room.cpus, std::max(1, r.cpus));
  if (room.memory_bytes > 0 && held.memory_bytes + r.memory_bytes > room.memory_bytes)
    return fmt::format(
        "service {} has {} of this machine's {} of free memory, and {} are asked for beside it", held.names,
        format_size(held.memory_bytes), format_size(room.memory_bytes), format_size(r.memory_bytes));
  const auto taken = held.gpus.find(r.gpu_type);
  const auto there = room.gpus.find(r.gpu_type);
  if (r.gpus > 0 && taken != held.gpus.end() && there != room.gpus.end() &&
      taken->second + static_cast<std::size_t>(r.gpus) > there->second)
    return fmt::format(
        "service {} has {} of this machine's {} GPUs of type {}, and {} are asked for beside it", held.names,
        taken->second, there->second, r.gpu_type, r.gpus);
  return "";
}

}  // namespace

void refuse_without_room(const workflow::WorkflowSpec& spec, const std::vector<plan::StagePlan>& plans,
                         const Room& room) {
  std::map<std::string, std::uint32_t> number_of;
  for (const workflow::StageSpec& stage : spec.stages)
    number_of.emplace(stage.name, static_cast<std::uint32_t>(number_of.size()));
  std::vector<std::set<std::uint32_t>> needed(spec.stages.size()), askers(spec.stages.size());
  for (std::uint32_t i = 0; i < spec.stages.size(); ++i)
    for (const std::string& need : spec.stages[i].needs) {
      const std::uint32_t number = number_of.at(need);
      needed[i].insert(number);
      needed[i].insert(needed[number].begin(), needed[number].end());
      if (spec.stages[number].kind == "service" && may_run(plans[i])) askers[number].insert(i);
    }
  const auto lives_beside = [&](std::uint32_t service, std::uint32_t stage) {
    const std::set<std::uint32_t>& all = askers[service];
    const bool is_before =
        std::all_of(all.begin(), all.end(), [&](auto one) { return needed[one].contains(stage); });
    const bool is_behind =
        std::all_of(all.begin(), all.end(), [&](auto one) { return needed[stage].contains(one); });
    return !is_before && !is_behind;
  };
  for (std::uint32_t i = 0; i < spec.stages.size(); ++i) {
    if (spec.stages[i].kind == "service" || !may_run(plans[i])) continue;
    Held held{{.cpus = 0, .memory_bytes = 0, .gpus = {}, .shards = 0}, ""};
    for (std::uint32_t s = 0; s < spec.stages.size(); ++s) {
      const workflow::StageSpec& service = spec.stages[s];
      if (service.kind != "service" || !lives_beside(s, i)) continue;
      const Resources& takes = service.service;
      ++held.shards;
      held.cpus += std::max(1, takes.cpus);
      held.memory_bytes += takes.memory_bytes;
      held.gpus[takes.gpu_type] += static_cast<std::size_t>(takes.gpus);
      held.names += (held.names.empty() ? "" : ", ") + service.name;
    }
    if (held.names.empty()) continue;
    for (const stages::PlannedJob& job : stages::planned_jobs(spec.stages[i], {}))
      if (const std::string why = no_room(held, job.resources, room); !why.empty())
        throw Error(fmt::format("{} jobs of stage {} cannot run: {}", job.job, spec.stages[i].name, why),
                    kExitUsage);
  }
}

void ServiceWatch::look(SteadyTime now) {
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(300);
  const run::Reactor& reactor = core_.reactor;
  for (std::uint32_t i = 0; i < stages_.stages().size(); ++i) {
    const LiveStage& one = stages_.stages()[i];
    if (one.spec->kind != "service" || reactor.stage(i) != run::StageState::kRunning || reactor.is_up(i))
      continue;
    const auto is_in_flight = [&](std::uint32_t job) { return reactor.job(job).in_flight > 0; };
    const std::vector<std::uint32_t> jobs_of_it = reactor.jobs_of(one.execution);
    const fs::path file = service_file(one.folder);
    if (std::none_of(jobs_of_it.begin(), jobs_of_it.end(), is_in_flight) || !path_exists(file)) continue;
    Json where;
    try {
      where = read_json_file(file);
    } catch (const Error&) {  // it went between the two: the server has ended
      continue;
    }
    core_.say({.kind = run::EventKind::kServiceUp, .execution = one.execution});
    core_.tell_news("service " + one.spec->name + " is up: " + where.value("url", ""));
  }
}

}  // namespace warpsmith::controller
