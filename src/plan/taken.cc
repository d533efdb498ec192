#include "warpsmith/plan/taken.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/records/run_files.h"
#include "warpsmith/records/verdict.h"
#include "warpsmith/toolchain/hosted_candidate.h"
#include "warpsmith/workflow/other_run.h"

namespace warpsmith::plan {

namespace {

// A program that was right, and its best speedup.
struct Success {
  Json candidate;
  double speedup = 0;
};

// What a run has: its successes by task, in the order in which its stages came upon them.
struct Source {
  std::map<std::string, std::vector<Success>> tasks;
  std::string lack;  // why there is nothing
};

fs::path newest_output(const fs::path& stage) {
  fs::path newest;
  fs::file_time_type time{};
  for (const fs::path& version : folder_entries(stage)) {
    std::error_code missing;
    const auto written = fs::last_write_time(version / "output.json", missing);
    if (missing || (!newest.empty() && written <= time)) continue;
    newest = version / "output.json";
    time = written;
  }
  return newest;
}

// output.json of each stage that has a current one, in the order of the run's workflow.
std::vector<fs::path> current_outputs(const fs::path& run) {
  std::vector<fs::path> files;
  if (path_exists(run / "state.json")) {
    for (const Json& stage : read_state_json(run).value("stages", Json::array())) {
      const std::string hash8 = stage.value("hash8", "");
      const fs::path file = run / "stages" / stage.value("stage", "") / hash8 / "output.json";
      if (!hash8.empty() && path_exists(file)) files.push_back(file);
    }
    return files;
  }
  for (const fs::path& stage : folder_entries(run / "stages"))
    if (const fs::path file = newest_output(stage); !file.empty()) files.push_back(file);
  std::sort(files.begin(), files.end());
  return files;
}

Source read_source(const fs::path& run) {
  Source source{.tasks = {}, .lack = workflow::lack_of_run(run)};
  if (!source.lack.empty()) return source;
  // Speedups on another device kind, or over another baseline, are no measure of one another.
  std::string device, baseline;
  std::map<std::string, std::pair<std::string, std::size_t>> places;  // id -> task, position
  for (const fs::path& file : current_outputs(run)) {
    use_json(file, [&](const Json& output) {
      for (const Json& entry : output.value("candidates", Json::array())) {
        const auto measurement = entry.find("measurement");
        if (measurement == entry.end() || measurement->value("verdict", "") != to_string(Verdict::kOk))
          continue;
        const std::string on = output.value("device", "cpu"), over = measurement->value("baseline", "");
        if (device.empty()) {
          device = on;
          baseline = over;
        }
        if (on != device || over != baseline) continue;
        const Json& candidate = entry.at("candidate");
        const std::string id = candidate.at("id"), task = candidate.at("task");
        const double speedup = measurement->value("speedup", 0.0);
        std::vector<Success>& list = source.tasks[task];
        const auto [place, is_new] = places.emplace(id, std::pair(task, list.size()));
        if (is_new)
          list.push_back({candidate, speedup});
        else
          list[place->second.second].speedup = std::max(list[place->second.second].speedup, speedup);
      }
    });
  }
  return source;
}

std::vector<std::string> tasks_of(const workflow::StageSpec& stage,
                                  const workflow::MeasureSettings& settings) {
  std::vector<std::string> tasks;
  for (const auto& [name, ids] : stage.dataset.groups())
    if (settings.wants_group(name)) tasks.insert(tasks.end(), ids->begin(), ids->end());
  return tasks;
}

std::shared_ptr<const workflow::TakenCandidates> taken_of(std::vector<Candidate> list) {
  std::string ids;
  for (const Candidate& candidate : list) ids += candidate.id + "\n";
  return std::make_shared<const workflow::TakenCandidates>(
      workflow::TakenCandidates{std::move(list), sha256_hex(ids)});
}

std::vector<Candidate> choose(const Source& source, const workflow::StageSpec& stage,
                              const workflow::MeasureSettings& settings) {
  std::vector<Candidate> list;
  for (const std::string& task : tasks_of(stage, settings)) {
    const auto found = source.tasks.find(task);
    if (found == source.tasks.end()) continue;
    if (settings.select == "all") {
      for (const Success& one : found->second) list.push_back(candidate_from_json(one.candidate));
    } else {
      const auto best =
          std::max_element(found->second.begin(), found->second.end(),
                           [](const Success& a, const Success& b) { return a.speedup < b.speedup; });
      list.push_back(candidate_from_json(best->candidate));
    }
  }
  return list;
}

std::vector<Candidate> imported(const workflow::StageSpec& stage, const workflow::MeasureSettings& settings,
                                Diagnostics& mistakes) {
  std::vector<Candidate> list;
  std::set<std::string> ids;
  for (const std::string& task : tasks_of(stage, settings))
    for (const task::HostedSource& source :
         task::load_imported_sources(stage.dataset.folder / task, mistakes)) {
      const fs::path name = fs::path(task) / task::kImportedFolder / source.path.filename();
      Candidate candidate =
          toolchain::make_candidate(task, source, Origin{"imported", "", 0, name.generic_string(), ""});
      if (ids.insert(candidate.id).second) list.push_back(std::move(candidate));
    }
  return list;
}

void take_imported(workflow::StageSpec& stage, const workflow::MeasureSettings& settings) {
  const std::string folder = workflow::shown_path(stage.dataset.folder);
  Diagnostics mistakes;
  std::vector<Candidate> list = imported(stage, settings, mistakes);
  if (!mistakes.empty())
    stage.blocked = to_string(mistakes.front());
  else if (!is_folder(stage.dataset.folder))
    stage.blocked = "there is no folder " + folder + "; `warpsmith import` makes it";
  else if (list.empty())
    stage.blocked = "no task of this workflow in " + folder + " has kernels below imported/";
  else
    stage.taken = taken_of(std::move(list));
}

}  // namespace

void take_candidates(workflow::WorkflowSpec& spec) {
  std::map<fs::path, Source> sources;  // the instances of a matrix share theirs
  for (workflow::StageSpec& stage : spec.stages) {
    const auto* settings = std::get_if<workflow::MeasureSettings>(&stage.settings);
    if (settings == nullptr || !settings->takes()) continue;
    if (!settings->candidates.empty()) {
      take_imported(stage, *settings);
      continue;
    }
    const fs::path run = settings->candidates_of_run;
    std::string lack;
    try {
      auto found = sources.find(run);
      if (found == sources.end()) found = sources.emplace(run, read_source(run)).first;
      lack = found->second.lack;
      if (lack.empty()) stage.taken = taken_of(choose(found->second, stage, *settings));
    } catch (const std::exception& e) {  // a file that is damaged, or of another version
      lack = "the run " + workflow::shown_path(run) + " cannot be read: " + e.what();
    }
    if (lack.empty() && stage.taken->list.empty())
      lack = "the run " + workflow::shown_path(run) + " has no successful program of this workflow's tasks";
    if (!lack.empty()) {
      stage.taken.reset();
      stage.blocked =
          fmt::format("{}; `{}` {}", lack, workflow::command_for_run(run, fs::absolute(spec.file)),
                      lack.starts_with("there is no run") ? "makes it" : "goes on with it");
    }
  }
}

}  // namespace warpsmith::plan
