// What stages changed of a model: programs drawn from its frozen checkpoints, compared task by task.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "warpsmith/stats/bootstrap.h"
#include "warpsmith/store/results.h"

namespace warpsmith::report {

// Of one group of tasks, from one instance of a `measure` stage's matrix of stages to a later one. Intervals
// are 95 %, by a bootstrap over the tasks that both have, each task by the mean of its samples, paired.
struct LearningRow {
  std::string group, before, after;
  std::int64_t tasks = 0;
  stats::BootstrapInterval valid, novel;  // shares of the samples: after less before
  // Of one draw, a program that is wrong or known counting 1: after divided by before.
  stats::BootstrapInterval novel_draw;
};

// Neighbours in the order of the workflow; and the first with the last, where there are more than two.
std::vector<LearningRow> learning_rows(const store::Results& results);

}  // namespace warpsmith::report
