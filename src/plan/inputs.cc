#include "warpsmith/plan/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/workflow/devices.h"
#include "warpsmith/workflow/hack_database.h"

namespace warpsmith::plan {

namespace {

// All files below <task>/candidates: their paths and contents. Empty where there is no such folder.
std::string digest_folder(const fs::path& folder) {
  if (!is_folder(folder)) return {};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && !entry.path().filename().string().starts_with('.'))
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  Sha256 digest;
  for (const fs::path& file : files)
    digest.field(fs::relative(file, folder).generic_string()).field(read_file(file));
  return digest.hex();
}

// Threads that can change a result: the order of floating-point sums, the time of a call.
Json threads_of(const workflow::StageSpec& stage) {
  Json threads = Json::object();
  const std::string& kind = stage.kind;
  if (kind == "collect" || kind == "measure" || kind == "self_supervised" || kind == "contrastive")
    threads["measure"] = stage.protocol.threads;
  if (!workflow::has_own_model(stage)) return threads;  // a server has the model
  if (kind == "sft" || kind == "self_supervised" || kind == "contrastive") {
    threads["train"] = stage.train.cpus;
    if (stage.train.ranks > 1) threads["train_ranks"] = stage.train.ranks;
  }
  if (!stage.policy && (kind == "measure" || kind == "self_supervised" || kind == "contrastive"))
    threads["generate"] = stage.generate.cpus;
  // Another device gives other numbers.
  if (threads.contains("train") && stage.train.gpus > 0) threads["train_gpus"] = stage.train.gpus;
  if (threads.contains("generate") && stage.generate.gpus > 0) threads["generate_gpus"] = stage.generate.gpus;
  return threads;
}

// Ids of the tasks whose files the stage reads.
std::set<std::string> tasks_of(const workflow::StageSpec& stage) {
  const auto* command = std::get_if<workflow::CommandSettings>(&stage.settings);
  if (stage.kind == "service" || (command != nullptr && command->items == "none")) return {};
  return stage.dataset.ids();
}

std::string shown(const Json& value) {
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  const bool digest = text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (digest) return text.substr(0, 8);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

void compare(const std::string& path, const Json* before, const Json* after, std::vector<Change>& changes) {
  if (before != nullptr && after != nullptr && *before == *after) return;
  const auto is_object = [](const Json* json) { return json == nullptr || json->is_object(); };
  if (is_object(before) && is_object(after)) {
    std::set<std::string> keys;
    for (const Json* side : {before, after})
      if (side != nullptr)
        for (const auto& [key, value] : side->items()) keys.insert(key);
    const auto member = [](const Json* side, const std::string& key) -> const Json* {
      if (side == nullptr) return nullptr;
      const auto it = side->find(key);
      return it == side->end() ? nullptr : &*it;
    };
    for (const std::string& key : keys)
      compare(path.empty() ? key : path + "." + key, member(before, key), member(after, key), changes);
    return;
  }
  changes.push_back({path, before == nullptr ? "" : shown(*before), after == nullptr ? "" : shown(*after)});
}

}  // namespace

DatasetDigests digest_dataset(const fs::path& folder) {
  DatasetDigests digests;
  if (folder.empty() || !is_folder(folder)) return digests;
  try {
    for (const fs::path& entry : folder_entries(folder)) {
      const fs::path task = entry / "task.yaml";
      if (!path_exists(task)) continue;
      const std::string id = entry.filename().string();
      Diagnostics ignored;  // a task with mistakes counts as a whole; who loads it reports them
      const auto loaded = task::load_task(entry, ignored);
      digests.gpu_tasks[id] = loaded ? loaded->gpu_digest : sha256_file_hex(task);
      digests.tasks[id] = loaded ? loaded->digest : digests.gpu_tasks[id];
      digests.candidates[id] = digest_folder(entry / "candidates");
      for (const char* tier : {"extension", "python"}) digests.hosted[tier][id] = digest_folder(entry / tier);
    }
  } catch (const fs::filesystem_error& e) {
    throw Error(std::string("while reading the dataset: ") + e.what());
  }
  return digests;
}

Digests digest_datasets(const workflow::WorkflowSpec& spec) {
  Digests digests;
  for (const workflow::StageSpec& stage : spec.stages)
    if (!digests.contains(stage.dataset.folder))
      digests[stage.dataset.folder] = digest_dataset(stage.dataset.folder);
  return digests;
}

Json stage_inputs(const workflow::StageSpec& stage, const DatasetDigests& digests,
                  const std::map<std::string, std::string>& upstream) {
  Json tasks = Json::object(), candidates = Json::object(), versions = Json::object(),
       outputs = Json::object();
  const auto& task_files = stage.device == "cpu" ? digests.tasks : digests.gpu_tasks;
  for (const std::string& id : tasks_of(stage)) {
    const auto task = task_files.find(id);
    tasks[id] = task == task_files.end() ? "" : task->second;
    if (stage.kind != "collect") continue;  // later stages see candidates through its output
    const std::string& answer = stage.prompt.answer;
    const auto& folders = answer == "plan" ? digests.candidates : digests.hosted.at(answer);
    const auto files = folders.find(id);
    candidates[id] = files == folders.end() ? "" : files->second;
  }
  for (const std::string& program : programs_of(stage)) versions[program] = behaviour_version(program);
  for (const std::string& needed : stage.needs) {
    const auto it = upstream.find(needed);
    if (it == upstream.end() || it->second.empty())
      throw Error("stage `" + stage.name + "`: the output of `" + needed + "` is not known");
    outputs[needed] = it->second;
  }
  Json inputs = {{"params", stage.resolved},       {"device", stage.device},
                 {"threads", threads_of(stage)},   {"seed", stage.seed},
                 {"tasks", std::move(tasks)},      {"candidates", std::move(candidates)},
                 {"upstream", std::move(outputs)}, {"versions", std::move(versions)}};
  // What a twin measured is never the GPU's, and what was not measured for want of a device is, once there is
  // one.
  if (stage.device_found != workflow::DeviceFound::kUnasked) {
    inputs["device"] = stage.wanted_device;
    inputs["device_found"] = to_string(stage.device_found);
  }
  const auto* measure = std::get_if<workflow::MeasureSettings>(&stage.settings);
  if (measure != nullptr && measure->takes()) {
    if (!stage.taken)
      throw Error("stage `" + stage.name + "`: the candidates of " + measure->candidates_of_run +
                  measure->candidates + " are not known");
    inputs[measure->candidates.empty() ? "candidates_of_run" : "imported"] = stage.taken->digest;
  }
  if (stage.model.pretrained && stage.resolved.contains("model"))
    inputs["model"] = stage.model.pretrained->digest;
  // Only where cases are quoted, so that the other stages' hashes stay what they were.
  const auto* contrastive = std::get_if<workflow::ContrastiveSettings>(&stage.settings);
  if (contrastive != nullptr && contrastive->quote_hacks > 0) {
    if (!contrastive->hacks.empty() && !stage.hacks)
      throw Error("stage `" + stage.name + "`: the known hacks of " + contrastive->hacks + " are not known");
    inputs["hacks"] = {{"quoted", contrastive->quote_hacks},
                       {"context", stage.policy ? 0 : stage.model.context},  // what room a prompt has
                       {"database", stage.hacks ? stage.hacks->digest : ""}};
  }
  return inputs;
}

std::string hash_inputs(const Json& inputs) { return sha256_hex(inputs.dump()); }

Json inputs_file(const workflow::StageSpec& stage, const Json& inputs) {
  return {{"schema", "warpsmith.stage_inputs/1"},
          {"stage", stage.name},
          {"base", stage.base_name},
          {"hash", hash_inputs(inputs)},
          {"inputs", inputs}};
}

std::vector<Change> differences(const Json& before, const Json& after) {
  std::vector<Change> changes;
  compare("", &before, &after, changes);
  // What a person changed comes before what follows from it.
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return !a.path.starts_with("upstream.") && b.path.starts_with("upstream.");
  });
  return changes;
}

std::string to_string(const Change& change) {
  std::string path = change.path;
  if (path.starts_with("params."))
    path = path.substr(7);
  else if (path.starts_with("upstream."))
    path = "output of " + path.substr(9);
  else if (path.starts_with("tasks."))
    path = "task file of " + path.substr(6);
  else if (path.starts_with("candidates."))
    path = "candidate files of " + path.substr(11);
  else if (path.starts_with("versions."))
    path = "behaviour of " + path.substr(9);
  else if (path == "candidates_of_run")
    path = "candidates of the run";
  else if (path == "model")
    path = "folder of the model";
  else if (path == "imported")
    path = "imported kernels";
  else if (path == "hacks.database")
    path = "known hacks";
  else if (path == "hacks.quoted")
    path = "quote_hacks";
  else if (path == "hacks.context")
    path = "model.context";
  else if (path == "device_found")
    path = "the device found";
  return fmt::format("{}: {} -> {}", path, change.before.empty() ? "(nothing)" : change.before,
                     change.after.empty() ? "(nothing)" : change.after);
}

}  // namespace warpsmith::plan
