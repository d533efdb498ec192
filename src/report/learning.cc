#include "warpsmith/report/learning.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "measured_samples.h"
#include "version_order.h"
#include "warpsmith/report/summary.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::report {

namespace {

using DrawnSamples = std::vector<const store::SampleRow*>;
// stage -> group -> task -> samples
using SamplesByTask = std::map<std::string, DrawnSamples>;
using Drawn = std::map<std::string, std::map<std::string, SamplesByTask>>;

bool is_valid(const store::SampleRow& s) { return s.verdict == to_string(Verdict::kOk) && s.speedup > 0; }
bool is_novel(const store::SampleRow& s) { return is_valid(s) && !s.known; }

template <typename Value>
stats::BootstrapInterval change(const SamplesByTask& before, const SamplesByTask& after, const Value& value) {
  std::vector<std::vector<double>> sides[2];
  for (const auto& [task, samples] : before) {
    const auto it = after.find(task);
    if (it == after.end()) continue;
    const DrawnSamples* const of_sides[] = {&samples, &it->second};
    for (int side = 0; side < 2; ++side) {
      std::vector<double> values;
      for (const store::SampleRow* sample : *of_sides[side]) values.push_back(value(*sample));
      sides[side].push_back({stats::mean(values)});
    }
  }
  return stats::paired_bootstrap(sides[0], sides[1], {.resamples = 2000});
}

LearningRow compare_stages(const std::string& group, const std::string& before, const std::string& after,
                           const Drawn& drawn) {
  const SamplesByTask &a = drawn.at(before).at(group), &b = drawn.at(after).at(group);
  LearningRow row{group, before, after, 0, {}, {}, {}};
  row.tasks = std::count_if(a.begin(), a.end(), [&](const auto& task) { return b.contains(task.first); });
  if (row.tasks == 0) return row;
  row.valid = change(a, b, [](const store::SampleRow& s) { return is_valid(s) ? 1.0 : 0.0; });
  row.novel = change(a, b, [](const store::SampleRow& s) { return is_novel(s) ? 1.0 : 0.0; });
  row.novel_draw = change(
      a, b, [](const store::SampleRow& s) { return is_novel(s) ? std::log(std::max(1.0, s.speedup)) : 0.0; });
  for (double* value : {&row.novel_draw.estimate, &row.novel_draw.low, &row.novel_draw.high})
    *value = std::exp(*value);
  return row;
}

}  // namespace

std::vector<LearningRow> learning_rows(const store::Results& results) {
  // Instances of a matrix, in the order of the workflow.
  std::map<std::string, std::vector<const store::StageRow*>> matrices;
  std::set<std::string> names;
  for (const store::StageRow& stage : results.stages) names.insert(stage.name);
  const auto is_of_a_stage = [&](const store::StageRow& stage) {  // "evaluate-sft"; not "evaluate-0.8"
    return stage.name.starts_with(stage.base + "-") &&
           names.contains(stage.name.substr(stage.base.size() + 1));
  };
  for (const store::StageRow& stage : results.stages)
    if (stage.kind == "measure" && stage.current && !stage.base.empty() && is_of_a_stage(stage))
      matrices[stage.base].push_back(&stage);
  const std::set<std::string> degenerate = degenerate_tasks(results);
  Drawn drawn;
  std::map<int, std::string> groups;
  for (const store::SampleRow& sample : results.generated) {
    if (!says_something(sample) || degenerate.contains(sample.task)) continue;
    drawn[sample.stage][sample.group][sample.task].push_back(&sample);
    groups.emplace(group_rank(sample.group), sample.group);
  }
  std::vector<LearningRow> rows;
  for (auto& [base, stages] : matrices) {
    std::stable_sort(stages.begin(), stages.end(),
                     [](const auto* a, const auto* b) { return a->place < b->place; });
    const auto add = [&](const std::string& group, std::size_t before, std::size_t after) {
      const std::string &from = stages[before]->name, &to = stages[after]->name;
      if (!drawn[from].contains(group) || !drawn[to].contains(group)) return;
      if (LearningRow row = compare_stages(group, from, to, drawn);
          row.tasks >= static_cast<int>(kFewestTasks))
        rows.push_back(std::move(row));
    };
    for (const auto& [rank, group] : groups) {
      for (std::size_t i = 1; i < stages.size(); ++i) add(group, i - 1, i);
      if (stages.size() > 2) add(group, 0, stages.size() - 1);
    }
  }
  return rows;
}

}  // namespace warpsmith::report
