#include "warpsmith/report/learning.h"

#include <algorithm>
#include <cmath>

namespace warpsmith::report {

namespace {

constexpr stats::BootstrapSettings kBootstrap{.resamples = 2000};

std::int64_t fewest(const DrawsByTask& tasks) {
  std::size_t least = tasks.empty() ? 0 : tasks.begin()->second.size();
  for (const auto& [task, draws] : tasks) least = std::min(least, draws.size());
  return static_cast<std::int64_t>(least);
}

std::int64_t most(const DrawsByTask& tasks) {
  std::size_t most = 0;
  for (const auto& [task, draws] : tasks) most = std::max(most, draws.size());
  return static_cast<std::int64_t>(most);
}

// pass@k of a task, where `counts` are the samples that pass.
DrawFigure pass_figure(std::int64_t k, bool (*counts)(const store::SampleRow&)) {
  return [k, counts](const Draws& draws) {
    const auto passing =
        std::count_if(draws.begin(), draws.end(), [&](const store::SampleRow* s) { return counts(*s); });
    return stats::pass_at_k(static_cast<std::int64_t>(draws.size()), passing, k);
  };
}

std::vector<PassAtK> passes_of(const DrawsByTask& tasks, bool (*counts)(const store::SampleRow&)) {
  std::vector<PassAtK> out;
  for (const std::int64_t k : stats::kFrozenPassKs) {
    PassAtK& pass = out.emplace_back(PassAtK{k, static_cast<std::int64_t>(tasks.size())});
    if (fewest(tasks) < k) continue;
    const stats::BootstrapInterval mean =
        stats::bootstrap_mean(task_figures(tasks, pass_figure(k, counts)), kBootstrap);
    pass.value = mean.estimate;
    if (tasks.size() >= kFewestTasks) pass.interval = stats::Interval{mean.low, mean.high};
  }
  return out;
}

DrawsByTask in_both(DrawsByTask tasks, const DrawsByTask& others) {
  std::erase_if(tasks, [&](const auto& task) { return !others.contains(task.first); });
  return tasks;
}

LearningRow compare_models(const std::string& group, const FrozenModel& before, const FrozenModel& after) {
  LearningRow row;
  row.group = group;
  row.before = before.stage;
  row.after = after.stage;
  const DrawsByTask a = in_both(before.draws(group), after.draws(group)), b = in_both(after.draws(group), a);
  row.tasks = static_cast<std::int64_t>(a.size());
  if (a.size() < kFewestTasks) return row;
  row.valid = paired_change(a, b, valid_share, kBootstrap);
  row.novel = paired_change(a, b, novel_share, kBootstrap);
  const DrawsByTask timed_a = in_both(before.timed_draws(group), after.timed_draws(group)),
                    timed_b = in_both(after.timed_draws(group), timed_a);
  if (timed_a.size() < kFewestTasks) return row;
  row.novel_draw = paired_change(timed_a, timed_b, mean_log_novel_gain, kBootstrap);
  for (double* value : {&row.novel_draw->estimate, &row.novel_draw->low, &row.novel_draw->high})
    *value = std::exp(*value);
  for (const std::int64_t k : stats::kFrozenPassKs)
    if (std::min(fewest(timed_a), fewest(timed_b)) >= k)
      row.fast_novel.push_back(
          {k, paired_change(timed_a, timed_b, pass_figure(k, is_fast_novel), kBootstrap)});
  return row;
}

}  // namespace

std::vector<PassRow> pass_rows(const std::vector<FrozenModel>& models) {
  std::vector<PassRow> rows;
  for (const FrozenModel& model : models)
    for (const std::string& group : groups_of({&model})) {
      const DrawsByTask tasks = model.draws(group);
      rows.push_back({model.stage, model.hash8, model.of, group, static_cast<std::int64_t>(tasks.size()),
                      fewest(tasks), most(tasks), passes_of(tasks, is_valid),
                      passes_of(model.timed_draws(group), is_fast_novel)});
    }
  return rows;
}

std::vector<LearningRow> learning_rows(const std::vector<FrozenModel>& frozen) {
  std::vector<LearningRow> rows;
  for (const auto& [base, models] : by_matrix(frozen))
    for (const std::string& group : groups_of(models)) {
      const auto add = [&](const FrozenModel& before, const FrozenModel& after) {
        LearningRow row = compare_models(group, before, after);
        if (row.tasks >= static_cast<std::int64_t>(kFewestTasks)) rows.push_back(std::move(row));
      };
      for (std::size_t i = 1; i < models.size(); ++i) add(*models[i - 1], *models[i]);
      if (models.size() > 2) add(*models.front(), *models.back());
    }
  return rows;
}

}  // namespace warpsmith::report
