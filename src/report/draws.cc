#include "warpsmith/report/draws.h"

#include <algorithm>
#include <cmath>

#include "authors.h"
#include "measured_samples.h"
#include "version_order.h"
#include "warpsmith/report/summary.h"

namespace warpsmith::report {

namespace {

template <typename Figure>
double mean_over(const Draws& draws, const Figure& figure) {
  double sum = 0;
  for (const store::SampleRow* draw : draws) sum += figure(*draw);
  return sum / static_cast<double>(draws.size());
}

}  // namespace

bool says_something(const store::SampleRow& sample) {
  const auto verdict = parse_verdict(sample.verdict);
  return verdict && *verdict != Verdict::kUnsupported && *verdict != Verdict::kNotMeasured;
}

bool is_draw(const store::SampleRow& sample) { return sample.turn == 1; }

bool is_valid(const store::SampleRow& sample) {
  return sample.verdict == to_string(Verdict::kOk) && sample.speedup > 0;
}

bool is_novel(const store::SampleRow& sample) { return is_valid(sample) && !sample.known; }

bool is_fast_novel(const store::SampleRow& sample) {
  return is_novel(sample) && stats::is_above_bar(sample.speedup);
}

double log_gain(const store::SampleRow& sample) {
  return is_valid(sample) ? std::log(std::max(1.0, sample.speedup)) : 0;
}

double log_novel_gain(const store::SampleRow& sample) { return is_novel(sample) ? log_gain(sample) : 0; }

double valid_share(const Draws& draws) { return mean_over(draws, is_valid); }
double novel_share(const Draws& draws) { return mean_over(draws, is_novel); }
double mean_log_gain(const Draws& draws) { return mean_over(draws, log_gain); }
double mean_log_novel_gain(const Draws& draws) { return mean_over(draws, log_novel_gain); }

std::vector<const store::SampleRow*> counted_draws(const store::Results& results) {
  const std::set<std::string> degenerate = degenerate_tasks(results);
  std::vector<const store::SampleRow*> draws;
  for (const store::SampleRow& sample : results.generated)
    if (is_draw(sample) && says_something(sample) && !degenerate.contains(sample.task))
      draws.push_back(&sample);
  return draws;
}

std::vector<std::vector<double>> task_figures(const DrawsByTask& tasks, const DrawFigure& figure) {
  std::vector<std::vector<double>> rows;
  for (const auto& [task, draws] : tasks) rows.push_back({figure(draws)});
  return rows;
}

stats::BootstrapInterval paired_change(const DrawsByTask& before, const DrawsByTask& after,
                                       const DrawFigure& figure, const stats::BootstrapSettings& settings) {
  std::vector<std::vector<double>> sides[2];
  for (const auto& [task, draws] : before) {
    const auto it = after.find(task);
    if (it == after.end()) continue;
    sides[0].push_back({figure(draws)});
    sides[1].push_back({figure(it->second)});
  }
  return stats::paired_bootstrap(sides[0], sides[1], settings);
}

DrawsByTask FrozenModel::draws(const std::string& group) const {
  const auto it = groups.find(group);
  return it == groups.end() ? DrawsByTask() : it->second;
}

DrawsByTask FrozenModel::timed_draws(const std::string& group) const {
  DrawsByTask tasks = draws(group);
  std::erase_if(tasks, [&](const auto& task) { return host_bound.contains(task.first); });
  return tasks;
}

std::vector<FrozenModel> frozen_models(const store::Results& results) {
  std::vector<const store::StageRow*> stages;
  std::set<std::string> names;
  for (const store::StageRow& stage : results.stages) {
    names.insert(stage.name);
    if (stage.kind == "measure" && stage.current) stages.push_back(&stage);
  }
  std::stable_sort(stages.begin(), stages.end(),
                   [](const auto* a, const auto* b) { return a->place < b->place; });
  std::map<std::pair<std::string, std::string>, Draws> samples;
  for (const store::SampleRow* sample : counted_draws(results))
    samples[{sample->stage, sample->hash8}].push_back(sample);
  std::vector<FrozenModel> models;
  const Authors authors(results);
  const Measured measured(results);
  for (const store::StageRow* stage : stages) {
    const auto it = samples.find({stage->name, stage->hash8});
    if (it == samples.end() || !authors.drew(stage->name, stage->hash8)) continue;
    FrozenModel& model = models.emplace_back();
    model.stage = stage->name;
    model.hash8 = stage->hash8;
    if (stage->name.starts_with(stage->base + "-") && !stage->base.empty()) {
      const std::string of = stage->name.substr(stage->base.size() + 1);
      if (names.contains(of)) {  // "evaluate-sft"; not "evaluate-0.8"
        model.base = stage->base;
        model.of = of;
      }
    }
    model.host_bound = measured.host_bound(it->second);
    for (const store::SampleRow* sample : it->second)
      model.groups[sample->group][sample->task].push_back(sample);
  }
  return models;
}

std::map<std::string, std::vector<const FrozenModel*>> by_matrix(const std::vector<FrozenModel>& models) {
  std::map<std::string, std::vector<const FrozenModel*>> matrices;
  for (const FrozenModel& model : models)
    if (!model.base.empty()) matrices[model.base].push_back(&model);
  return matrices;
}

std::vector<std::string> groups_of(const std::vector<const FrozenModel*>& models) {
  std::map<std::pair<int, std::string>, std::string> groups;
  for (const FrozenModel* model : models)
    for (const auto& [group, tasks] : model->groups) groups[{group_rank(group), group}] = group;
  std::vector<std::string> names;
  for (const auto& [rank, group] : groups) names.push_back(group);
  return names;
}

}  // namespace warpsmith::report
