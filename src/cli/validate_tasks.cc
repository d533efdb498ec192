#include "validate_tasks.h"

#include <fmt/format.h>

#include "job_here.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/process/stop_signals.h"

namespace warpsmith::cli {

namespace {

CheckedTask checked_of(const task::Task& task, const Json& record) {
  CheckedTask c;
  c.task = task.id;
  c.file = (task.folder / "task.yaml").string();
  c.device = record.value("device", "");
  c.error = record.value("error", "");
  c.cases = record.value("cases", 0);
  c.eager_ns = record.value("eager_ns", 0.0);
  c.undecidable = record.value("undecidable", std::vector<std::string>());
  c.degenerate = record.value("why", "");
  c.marked = task.degenerate;
  if (c.degenerate.empty())
    for (const std::string& answer : record.value("cheap", std::vector<std::string>()))
      c.notes.push_back("an output that costs nothing: " + answer);
  if (const std::string names = record.value("unread_names", ""); c.degenerate.empty() && !names.empty())
    c.notes.push_back("the answer does not depend on " + names);
  for (const std::string& answer : record.value("cheap_when_timed", std::vector<std::string>()))
    c.notes.push_back("right at the shape that is timed, and at no other: " + answer);
  return c;
}

// `params` go to warpsmith-measure.
std::vector<CheckedTask> run_checks(const std::vector<task::Task>& tasks, const Json& params,
                                    const std::string& gpu) {
  const process::StopSignals signals;
  std::vector<CheckedTask> checked;
  for (const auto& [folder, group] : by_dataset(tasks)) {
    const TemporaryFolder run("validate");
    std::vector<Json> items;
    for (const task::Task& task : group) items.push_back({{"id", task.id}});
    Json all = params;
    all.update({{"check_tasks", true}, {"datasets", folder.string()}});
    const ShardRecords done = run_job(run.path(), "measure-tasks", items, all, 1, gpu);
    for (const task::Task& task : group) checked.push_back(checked_of(task, done.records.at(task.id)));
  }
  return checked;
}

}  // namespace

std::vector<CheckedTask> check_tasks(const std::vector<task::Task>& tasks,
                                     const ValidateTasksOptions& options) {
  const std::optional<process::Gpu> gpu = find_gpu(options.device);
  return run_checks(tasks,
                    {{"device_kind", options.device},
                     {"threads", options.threads},
                     {"check_seeds", options.seeds},
                     {"unsandboxed", options.unsandboxed}},
                    gpu ? gpu->uuid : "");
}

bool compile_references(const std::vector<task::Task>& tasks, Diagnostics& mistakes) {
  if (!path_exists(program_folder() / "warpsmith-measure")) return false;
  for (const CheckedTask& c : run_checks(tasks, {{"device_kind", "cpu"}, {"compile_only", true}}, ""))
    if (!c.error.empty()) mistakes.push_back({c.file, 0, 0, c.error, ""});
  return true;
}

Diagnostics mistakes_of(const std::vector<CheckedTask>& checked) {
  Diagnostics mistakes;
  for (const CheckedTask& c : checked) {
    if (!c.error.empty()) {
      mistakes.push_back({c.file, 0, 0, c.error, ""});
    } else if (!c.degenerate.empty() && c.marked.empty()) {
      mistakes.push_back(
          {c.file, 0, 0, c.degenerate,
           "mend its values or shapes, or say `degenerate: <why>`: then headlines leave it out"});
    }
  }
  return mistakes;
}

std::string checked_text(const std::vector<CheckedTask>& checked) {
  std::string text;
  for (const CheckedTask& c : checked) {
    if (!c.error.empty()) continue;
    text += fmt::format("{}: {} checks", c.task, c.cases);
    if (c.eager_ns > 0) text += fmt::format(", eager takes {:.4g} us", c.eager_ns / 1e3);
    if (!c.undecidable.empty())
      text += fmt::format(", {} of them undecidable ({})", c.undecidable.size(), c.undecidable.front());
    if (!c.degenerate.empty()) text += ", degenerate";
    if (c.degenerate.empty() && !c.marked.empty()) text += ", marked as degenerate, and nothing was found";
    for (const std::string& note : c.notes) text += "; " + note;
    text += "\n";
  }
  if (!checked.empty()) text += fmt::format("{} tasks on {}\n", checked.size(), checked.front().device);
  return text;
}

Json checked_json(const std::vector<CheckedTask>& checked) {
  Json list = Json::array();
  for (const CheckedTask& c : checked)
    list.push_back({{"task", c.task},
                    {"device", c.device},
                    {"error", c.error},
                    {"checks", c.cases},
                    {"eager_ns", c.eager_ns},
                    {"undecidable", c.undecidable},
                    {"degenerate", c.degenerate},
                    {"marked", c.marked},
                    {"notes", c.notes}});
  return list;
}

}  // namespace warpsmith::cli
