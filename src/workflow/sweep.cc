#include "warpsmith/workflow/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tables.h"

namespace warpsmith::workflow {

namespace {

// As a YAML scalar in quotes; JSON's escapes are YAML's, and `${` would be a reference.
std::string quoted(std::string text) {
  for (auto at = text.find("${"); at != std::string::npos; at = text.find("${", at + 3)) text.insert(at, "$");
  return Json(text).dump();
}

std::string list(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + quoted(word);
  return "[" + out + "]";
}

std::string milliseconds(double seconds) { return fmt::format("{}ms", std::llround(seconds * 1000)); }

std::string value_text(const KeyRule& rule, const Json& value) {
  if (rule.form == Form::kSeconds) return milliseconds(value.get<double>());
  return value.is_string() ? quoted(value.get<std::string>()) : value.dump();
}

// A map of the keys of `table` that `wanted` names; all where it names none. What is not set is left out.
template <typename T>
std::string flow_map(const Table<T>& table, const T& object, const std::vector<std::string>& wanted = {}) {
  std::string out;
  const T standard{};
  for (const Key<T>& key : table) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), key.rule.name) == wanted.end()) continue;
    const Json value = value_json(key, object);
    if (value == value_json(key, standard) && !wanted.empty()) continue;
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", key.rule.name, value_text(key.rule, value));
  }
  return "{" + out + "}";
}

}  // namespace

const StageSpec* measuring_stage(const WorkflowSpec& spec) {
  const auto found = std::find_if(spec.stages.begin(), spec.stages.end(), [](const StageSpec& s) {
    return !runs_program(s.kind) && s.kind != "sft";
  });
  if (found != spec.stages.end()) return &*found;
  return spec.stages.empty() ? nullptr : &spec.stages.front();
}

std::string sweep_yaml(const SweepRequest& request, const StageSpec& like) {
  const std::vector<std::string> of_job = {"cpus", "memory", "time", "output"};
  std::string text = fmt::format(
      "# The {} kernels of a run, measured over GPU types; made by `warpsmith sweep`, which writes it anew.\n"
      "schema: warpsmith.workflow/1\n"
      "name: {}\n"
      "seed: {}\n\n"
      "dataset:\n"
      "  folder: {}\n"
      "  train: {}\n",
      request.select, request.name, like.seed, quoted(like.dataset.folder.string()),
      list(like.dataset.train));
  for (const auto& [name, ids] : like.dataset.groups())
    if (ids != &like.dataset.train && !ids->empty()) text += fmt::format("  {}: {}\n", name, list(*ids));
  return text + fmt::format(
                    "\ncompile: {}\n"
                    "measure: {}\n"
                    "resources: {{compile: {}, measure: {}}}\n"
                    "shard_time: {}\n\n"
                    "stages:\n"
                    "  - name: sweep\n"
                    "    kind: measure\n"
                    "    matrix: {{gpu: {}}}\n"
                    "    candidates_of_run: {}\n"
                    "    select: {}\n"
                    "    device: ${{matrix.gpu}}\n",
                    flow_map(compile_keys(), like.compiler), flow_map(protocol_keys(), like.protocol),
                    flow_map(resource_keys(), like.compile, of_job),
                    flow_map(resource_keys(), like.measure, of_job), milliseconds(like.shard_s),
                    list(request.gpus), quoted(request.run.generic_string()), request.select);
}

}  // namespace warpsmith::workflow
