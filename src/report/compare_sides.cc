// What each side of a comparison says: of a run its measurements and failed compiles, of a file its scores.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "stage_devices.h"
#include "warpsmith/base/words.h"
#include "warpsmith/report/baselines.h"
#include "warpsmith/report/compare.h"
#include "warpsmith/report/kernelbench.h"

namespace warpsmith::report {

namespace {

// The run's kind of device that a published file names in its own way ("3090", "NVIDIA H100 80GB HBM3"); else
// that name.
std::string device_kind(const std::string& said, const Side& run) {
  for (const Scored& s : run.scores)
    if (!s.device.empty() && !said.empty() &&
        (holds_words(said, s.device) || holds_words(s.device, said) || holds_words("RTX " + said, s.device)))
      return s.device;
  return said;
}

// A speedup over each baseline that was timed.
void add_over_each(const Comparison& comparison, Scored score, Side& side) {
  for (const OverBaseline& one : comparison.all) {
    if (!one.speedup) continue;
    score.baseline = one.name;
    score.speedup = one.speedup->value;
    score.low = one.speedup->low;
    score.high = one.speedup->high;
    side.scores.push_back(score);
  }
}

std::string without_ends(const std::string& text) {
  constexpr const char* kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

}  // namespace

Side side_of(const store::Results& results, Over over) {
  Side side;
  side.name = results.run;
  if (!results.provenance.empty()) {
    const Json provenance = Json::parse(results.provenance, nullptr, false);
    side.replayed = provenance.is_object() && provenance.contains("replay_timings") &&
                    provenance.at("replay_timings") != "";
  }
  const StageDevices devices(results);
  std::map<std::string, std::string> task_of;
  for (const store::CandidateRow& row : results.candidates) task_of.emplace(row.id, row.task);
  for (const store::CompileRow& row : results.compiles) {
    if (row.verdict == to_string(Verdict::kOk)) continue;
    Scored s;
    s.task = task_of[row.candidate];
    s.candidate = row.candidate;
    s.device = devices.of(row);
    s.verdict = row.verdict;
    if (!s.task.empty()) side.scores.push_back(std::move(s));
  }
  for (const store::MeasurementRow& row : results.measurements) {
    const Measurement& m = row.value;
    Scored s;
    s.task = m.task;
    s.candidate = m.candidate;
    s.device = devices.of(row);
    s.baseline = m.baseline;
    s.verdict = to_string(m.verdict);
    if (row.device >= 0) {
      const DeviceFacts& device = results.devices.at(static_cast<std::size_t>(row.device));
      s.device = device.kind;
      side.devices.insert(device.name);
    }
    if (m.verdict == Verdict::kOk && m.speedup > 0) {
      s.speedup = m.speedup;
      s.low = m.speedup_low;
      s.high = m.speedup_high;
      s.math = m.math;
      s.shape = shape_text(m.shape);
    }
    if (over == Over::kAll && s.speedup)
      add_over_each(compare_with_baselines(results, row), s, side);
    else
      side.scores.push_back(std::move(s));
  }
  return side;
}

Side side_of(const Published& published, const std::string& name, const store::Results& run,
             const std::string& device) {
  Side side;
  side.name = name;
  side.published = true;
  const Side measured = side_of(run, Over::kAll);
  const std::string kind = device.empty() ? device_kind(published.device, measured) : device;
  if (!published.device.empty()) side.devices.insert(published.device);
  std::set<std::string> baselines;
  for (const Scored& s : measured.scores) baselines.insert(s.baseline);
  std::map<std::pair<int, int>, std::string> tasks;
  for (const store::TaskRow& task : run.tasks)
    if (const auto problem = kernelbench_problem(task.id))
      tasks.emplace(std::pair(problem->level, problem->number), task.id);
  std::map<std::pair<std::string, std::string>, std::string> by_source;  // task, text
  for (const store::CandidateRow& row : run.candidates)
    by_source.emplace(std::pair(row.task, without_ends(row.source)), row.id);
  for (const PublishedScore& score : published.scores) {
    if (!baselines.contains(score.baseline)) continue;
    Scored s;
    const auto task = tasks.find({score.level, score.number});
    s.task = task == tasks.end() ? fmt::format("level{}/{}", score.level, score.number) : task->second;
    if (const auto same = by_source.find({s.task, without_ends(score.source)});
        same != by_source.end() && !score.source.empty())
      s.candidate = same->second;
    s.device = kind;
    s.baseline = score.baseline;
    s.speedup = score.speedup;
    s.note = score.note;
    side.scores.push_back(std::move(s));
  }
  return side;
}

}  // namespace warpsmith::report
