#include "run_core.h"

#include <limits>
#include <utility>

#include "warpsmith/base/files.h"

namespace warpsmith::controller {

namespace {

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

}  // namespace

RunCore::RunCore(ControllerParts given)
    : parts(std::move(given)),
      reactor(make_reactor(parts)),
      metrics(fs::absolute(parts.run).lexically_normal(), [this](const std::string& what) { tell(what); }) {
  parts.run = fs::absolute(parts.run).lexically_normal();
}

void RunCore::note(run::Event event) {
  log->note(event);
  usage.take(event);
}

void RunCore::say(run::Event event) {
  note(event);
  reactor.apply(event);
}

std::string RunCore::where(run::ShardKey key) const {
  const run::JobView& view = reactor.job(key.job);
  return reactor.execution_key(view.execution).first + " " + std::to_string(view.round) + "/" + view.name +
         "/" + std::to_string(key.shard);
}

}  // namespace warpsmith::controller
