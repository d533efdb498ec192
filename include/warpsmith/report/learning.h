// What stages changed of a model: programs drawn from its frozen checkpoints, compared task by task. What
// counts as a draw: draws.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/report/draws.h"
#include "warpsmith/report/fast_p.h"
#include "warpsmith/report/summary.h"
#include "warpsmith/stats/bootstrap.h"
#include "warpsmith/store/results.h"

namespace warpsmith::report {

// pass@k of a frozen model for one group of tasks, over all tasks that it has samples of: the unbiased
// estimate of each, and their mean. A k has no value where a task has fewer samples than k. Intervals are
// 95 %, by a bootstrap over tasks; nothing where there are fewer than kFewestTasks.
struct PassRow {
  std::string stage, hash8, of, group;  // of: the stage that trained the model; empty: not known
  std::int64_t tasks = 0;
  std::int64_t least = 0, most = 0;  // samples of a task
  std::vector<PassAtK> right;        // a valid program, whoever had written it before
  // A novel one that is above 1.01x, over the tasks that are not bound by the host.
  std::vector<PassAtK> fast_novel;
};

// A row for each frozen model and group that it has samples of.
std::vector<PassRow> pass_rows(const std::vector<FrozenModel>& models);

// Of one group of tasks, from one instance of a `measure` stage's matrix of stages to a later one. Intervals
// are 95 %, by a bootstrap over the tasks that both have, each task by the mean of its samples, paired.
struct LearningRow {
  std::string group, before, after;
  std::int64_t tasks = 0;
  stats::BootstrapInterval valid, novel;  // shares of the samples: after less before
  // Of one draw, a program that is wrong or known counting 1: after divided by before. Without tasks that are
  // bound by the host; nothing where fewer than kFewestTasks are left.
  std::optional<stats::BootstrapInterval> novel_draw;
  // pass@k of novel programs above 1.01x, after less before, of the same tasks, where both have k samples of
  // each.
  struct Pass {
    std::int64_t k = 0;
    stats::BootstrapInterval change;
  };
  std::vector<Pass> fast_novel;
};

// Neighbours in the order of the workflow; and the first with the last, where there are more than two.
std::vector<LearningRow> learning_rows(const std::vector<FrozenModel>& models);

// The section of the page: the plot of stages, the tables, the plots of rounds. `rows`: evaluation_rows().
std::string learning_html(const store::Results& results, const std::vector<EvaluationRow>& rows);
// What stages did not measure because it was predicted to be slow, by round; nothing where no stage did so.
std::string skips_html(const store::Results& results);
Json pass_json(const std::vector<PassRow>& rows);
Json learning_json(const std::vector<LearningRow>& rows);
Json rounds_json(const std::vector<RoundRow>& rows);

}  // namespace warpsmith::report
