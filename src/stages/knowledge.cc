#include "knowledge.h"

#include <fmt/format.h>

#include <algorithm>

namespace warpsmith::stages {

namespace {

const StageOutput& output_of(const StageInputs& inputs, const std::string& stage) {
  const auto it = inputs.upstream.find(stage);
  if (it == inputs.upstream.end())
    throw Error(fmt::format("stage {}: {} has left no output", inputs.spec.name, stage), kExitUsage);
  return it->second;
}

bool is_comparable(const StageOutput& output, const workflow::StageSpec& spec, Comparable comparable) {
  if (comparable == Comparable::kAnything) return true;
  if (comparable == Comparable::kDevice) return output.value("device", spec.device) == spec.device;
  return output.value("protocol", Json::object()) == protocol_of(spec);
}

// "checkpoints/sft-1200" -> 1200; 0 where the name ends otherwise.
std::int64_t step_in_name(const std::string& path) {
  const std::size_t dash = path.rfind('-');
  if (dash == std::string::npos || dash + 1 == path.size() || path.size() - dash > 18 ||
      path.find_first_not_of("0123456789", dash + 1) != std::string::npos)
    return 0;
  return std::stoll(path.substr(dash + 1));
}

std::optional<Checkpoint> checkpoint_in(const StageOutput& output) {
  const std::string path = output.value("checkpoint", "");
  if (path.empty()) return std::nullopt;
  return Checkpoint{path, output.value("step", step_in_name(path)), output.value("checkpoint_digest", "")};
}

}  // namespace

Json protocol_of(const workflow::StageSpec& spec) {
  const workflow::ProtocolSettings& p = spec.protocol;
  return {{"device", spec.device},
          {"baseline", p.baseline},
          {"math", p.math},
          {"threads", p.threads},
          {"target", p.target},
          {"budget_s", p.budget_s},
          {"buckets", p.buckets},
          {"rounds_a_bucket", p.rounds_a_bucket},
          {"variance_gate", p.variance_gate},
          {"check_seeds", p.check_seeds}};
}

std::string math_of(const StageInputs& inputs, const std::string& task) {
  const auto it = std::find_if(inputs.tasks.begin(), inputs.tasks.end(),
                               [&](const task::Task& known) { return known.id == task; });
  return it == inputs.tasks.end() ? inputs.spec.protocol.math : task::math_of(*it, inputs.spec.protocol.math);
}

std::vector<Known> known_candidates(const StageInputs& inputs, const std::vector<std::string>& stages,
                                    Comparable comparable) {
  std::vector<Known> out;
  std::set<std::string> seen;
  for (const std::string& stage : stages) {
    const StageOutput& output = output_of(inputs, stage);
    const auto list = output.find("candidates");
    if (list == output.end() || !is_comparable(output, inputs.spec, comparable)) continue;
    for (const Json& entry : *list) {
      if (!entry.contains("measurement")) continue;
      Known known;
      try {
        known.candidate = candidate_from_json(entry.at("candidate"));
        known.measurement = measurement_from_json(entry.at("measurement"));
      } catch (const Error& e) {
        throw e.with_context("in the output of stage " + stage);
      }
      // The task may say otherwise in the dataset of another stage.
      if (const std::string& math = known.measurement.math; comparable == Comparable::kProtocol &&
                                                            !math.empty() &&
                                                            math != math_of(inputs, known.candidate.task))
        continue;
      if (known.measurement.verdict == Verdict::kNotMeasured || !seen.insert(known.candidate.id).second)
        continue;
      known.folder = entry.value("folder", "");
      known.expected = entry.value("expected", "");
      known.made_by = stage;
      known.code = entry.value("code", Json::object());
      out.push_back(std::move(known));
    }
  }
  return out;
}

std::vector<Known> unmeasured_programs(const StageInputs& inputs, const std::vector<std::string>& stages) {
  std::vector<Known> out;
  for (const std::string& stage : stages) {
    const StageOutput& output = output_of(inputs, stage);
    const auto list = output.find("unmeasured");
    if (list == output.end()) continue;
    for (const Json& candidate : *list) {
      out.emplace_back();
      out.back().candidate = candidate_from_json(candidate);
      out.back().made_by = stage;
      out.back().taken_as_right = true;
    }
  }
  return out;
}

std::optional<Checkpoint> newest_checkpoint(const StageInputs& inputs) {
  for (auto it = inputs.upstream_order.rbegin(); it != inputs.upstream_order.rend(); ++it)
    if (auto found = checkpoint_in(output_of(inputs, *it))) return found;
  return std::nullopt;
}

Checkpoint require_checkpoint(const StageInputs& inputs) {
  if (auto found = newest_checkpoint(inputs)) return *found;
  throw Error(
      fmt::format(
          "stage {}: a {} stage starts from a checkpoint, and none of the stages that it needs leaves one",
          inputs.spec.name, inputs.spec.kind),
      kExitUsage);
}

Checkpoint first_checkpoint(const StageInputs& inputs) {
  return workflow::has_own_model(inputs.spec) ? require_checkpoint(inputs) : Checkpoint{};
}

Checkpoint checkpoint_of(const StageInputs& inputs, const std::string& stage) {
  const std::string instance = instance_of(inputs, stage);
  if (auto found = checkpoint_in(output_of(inputs, instance))) return *found;
  throw Error(fmt::format("stage {}: {} has left no checkpoint", inputs.spec.name, instance), kExitUsage);
}

std::string instance_of(const StageInputs& inputs, const std::string& name) {
  if (inputs.upstream.contains(name)) return name;
  std::vector<std::string> found;
  for (const std::string& stage : inputs.upstream_order)
    if (stage.starts_with(name + "-")) found.push_back(stage);
  if (found.size() == 1) return found.front();
  throw Error(fmt::format("stage {}: `{}` is {} of the stages that it needs", inputs.spec.name, name,
                          found.empty() ? "none" : "more than one"),
              kExitUsage);
}

TaskSet::TaskSet(const workflow::DatasetSettings& dataset, const std::vector<task::Task>& tasks)
    : train_(dataset.train) {
  for (const task::Task& task : tasks) by_id_[task.id] = &task;
  const auto add = [&](const std::vector<std::string>& ids, const char* group) {
    for (const std::string& id : ids) {
      if (!by_id_.contains(id))
        throw Error(fmt::format("task `{}` is not in {}", id, dataset.folder.string()), kExitUsage);
      if (!group_.emplace(id, group).second) continue;
      (group == std::string("sft_only") ? sft_only_ : all_).push_back(id);
    }
  };
  for (const auto& [name, ids] : dataset.groups()) add(*ids, name);
}

const task::Task& TaskSet::at(const std::string& id) const {
  const auto it = by_id_.find(id);
  if (it == by_id_.end()) throw Error("task `" + id + "` is not in the dataset", kExitUsage);
  return *it->second;
}

const std::string& TaskSet::group(const std::string& id) const {
  static const std::string kExtra = "extra";
  const auto it = group_.find(id);
  return it == group_.end() ? kExtra : it->second;
}

}  // namespace warpsmith::stages
