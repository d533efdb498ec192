#include "validate_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "job_here.h"
#include "measure_here.h"
#include "print.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/task/hosted_files.h"
#include "warpsmith/toolchain/hosted_candidate.h"

namespace warpsmith::cli {

namespace {

struct Entry {  // one candidate
  std::size_t task = 0;
  std::string name, expected;
};

// Below its task's folder: `extension/ok/host.cu`. For a folder with one file in it, that file.
std::string place_of(const task::HostedSource& source, const task::Task& task) {
  const fs::path path = is_folder(source.path) && source.files.size() == 1
                            ? source.path / source.files.front().path
                            : source.path;
  return path.lexically_relative(task.folder).string();
}

// The entries' candidates go to `all`, in the same order.
std::vector<Entry> collect_entries(const std::vector<task::Task>& tasks, const DeviceHere& device,
                                   std::vector<MeasuredHere>& all) {
  std::vector<Entry> entries;
  Diagnostics mistakes;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    for (const auto load : {task::load_candidate_files, task::load_template_files})
      for (const task::CandidateFile& file : load(tasks[i], mistakes)) {
        Origin origin{"dataset", "", 0, file.expected + "/" + file.path.filename().string(), ""};
        entries.push_back({i, file.name, file.expected});
        all.push_back(
            {make_plan_candidate(tasks[i].id, file.source, std::move(origin)), nullptr, nullptr, {}});
      }
    for (const task::HostedSource& source : task::load_hosted_sources(tasks[i], mistakes)) {
      if (!device.is_gpu()) continue;
      Origin origin{"dataset", "", 0, place_of(source, tasks[i]), ""};
      entries.push_back({i, source.name, source.expected});
      all.push_back(
          {toolchain::make_hosted_candidate(tasks[i].id, source, std::move(origin)), nullptr, nullptr, {}});
    }
  }
  if (!mistakes.empty()) throw InvalidInput(mistakes);
  return entries;
}

// " (NVIDIA H200)" where some candidate says what it was measured on.
std::string on_which(const std::vector<MeasuredTask>& tasks) {
  for (const MeasuredTask& task : tasks)
    for (const MeasuredCandidate& c : task.candidates)
      if (c.measurement.device && !c.measurement.device->name.empty())
        return " (" + c.measurement.device->name + ")";
  return "";
}

// What stands before the verdict of a candidate's folder, below its task.
std::string folder_of(Tier tier) { return tier == Tier::kPlan ? "" : std::string(to_string(tier)) + "/"; }

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

bool MeasuredCandidate::as_expected() const {
  if (expected == "wrong_hidden")
    return measurement.verdict == Verdict::kWrongOutput && (measurement.only_hidden || at_gpu_shapes);
  if (expected == "unsupported" && at_gpu_shapes && is_success(measurement.verdict)) return true;
  return to_string(measurement.verdict) == expected;
}

int MeasuredTask::correct() const {
  return static_cast<int>(std::count_if(candidates.begin(), candidates.end(), [](const MeasuredCandidate& c) {
    return is_success(c.measurement.verdict);
  }));
}

double MeasuredTask::best() const {
  double best = 0;
  for (const MeasuredCandidate& c : candidates)
    if (is_success(c.measurement.verdict)) best = std::max(best, c.measurement.speedup);
  return best;
}

double MeasuredTask::log_deviation() const {
  double sum = 0, squares = 0;
  const auto scored = [](const MeasuredCandidate& c) {
    return is_success(c.measurement.verdict) && c.measurement.rounds > 0;
  };
  const double n = static_cast<double>(std::count_if(candidates.begin(), candidates.end(), scored));
  if (n < 2) return 0;
  for (const MeasuredCandidate& c : candidates)
    if (scored(c)) sum += std::log(c.measurement.speedup);
  for (const MeasuredCandidate& c : candidates)
    if (scored(c)) squares += std::pow(std::log(c.measurement.speedup) - sum / n, 2);
  return std::sqrt(squares / (n - 1));
}

std::vector<MeasuredTask> measure_tasks(const std::vector<task::Task>& tasks, const MeasureOptions& options) {
  std::vector<MeasuredTask> measured;
  const DeviceHere device = find_device(options.device);
  for (const auto& [folder, group] : by_dataset(tasks)) {
    const std::size_t first = measured.size();
    for (const task::Task& task : group) measured.push_back({task, {}});
    std::vector<MeasuredHere> all;
    const std::vector<Entry> entries = collect_entries(group, device, all);
    measure_here(folder, device, options, all, [&](std::size_t i) { return entries[i].expected == "ok"; });
    for (std::size_t i = 0; i < entries.size(); ++i) {
      MeasuredTask& task = measured[first + entries[i].task];
      task.candidates.push_back({entries[i].name, entries[i].expected, all[i].candidate.tier,
                                 all[i].measurement(), device.is_gpu() && !task.task.gpu_timing.empty()});
    }
  }
  return measured;
}

int verdicts_that_differ(const std::vector<MeasuredTask>& tasks) {
  int differ = 0;
  for (const MeasuredTask& task : tasks)
    for (const MeasuredCandidate& c : task.candidates) differ += !c.as_expected();
  return differ;
}

std::string measured_text(const std::vector<MeasuredTask>& tasks) {
  std::string text;
  int candidates = 0, above = 0, spread = 0, trained = 0;
  for (const MeasuredTask& task : tasks) {
    text += fmt::format("{} ({}): {} correct", task.task.id, to_string(task.task.split), task.correct());
    if (task.best() > 0)
      text += fmt::format(", best {:.2f}x, standard deviation of the log-speedup {:.2f}", task.best(),
                          task.log_deviation());
    text += "\n";
    for (const MeasuredCandidate& c : task.candidates) {
      const Measurement& m = c.measurement;
      std::string what;
      if (m.rounds > 0)
        what = fmt::format("{:.3f}x [{:.3f}, {:.3f}]  {:.1f} us against {:.1f} us", m.speedup, m.speedup_low,
                           m.speedup_high, m.candidate_ns / 1e3, m.baseline_ns / 1e3);
      if (const std::optional<double> share = roofline_share(m))
        what += fmt::format(", {:.0f} % of the roofline", 100 * *share);
      if (!m.detail.empty()) what += (what.empty() ? "" : "  ") + first_line(m.detail);
      text += fmt::format("  {} {:<28} {:<14} {}\n", c.as_expected() ? " " : "!",
                          folder_of(c.tier) + c.expected + "/" + c.name, to_string(m.verdict), what);
      ++candidates;
    }
    if (task.task.split == task::Split::kTrain) {
      ++trained;
      above += task.best() > 1.2;
    }
    spread += task.log_deviation() >= 0.2;
  }
  text += fmt::format("{} of {} verdicts are those of their folders{}\n",
                      candidates - verdicts_that_differ(tasks), candidates, on_which(tasks));
  text +=
      fmt::format("above 1.2x: {} of {} trained tasks; standard deviation of at least 0.2: {} of {} tasks\n",
                  above, trained, spread, tasks.size());
  return text;
}

Json measured_json(const std::vector<MeasuredTask>& tasks) {
  Json list = Json::array();
  for (const MeasuredTask& task : tasks) {
    Json candidates = Json::array();
    for (const MeasuredCandidate& c : task.candidates)
      candidates.push_back({{"name", c.name},
                            {"tier", to_string(c.tier)},
                            {"expected", c.expected},
                            {"as_expected", c.as_expected()},
                            {"measurement", to_json(c.measurement)}});
    list.push_back({{"task", task.task.id},
                    {"split", to_string(task.task.split)},
                    {"best", task.best()},
                    {"correct", task.correct()},
                    {"log_deviation", task.log_deviation()},
                    {"candidates", std::move(candidates)}});
  }
  return list;
}

}  // namespace warpsmith::cli
