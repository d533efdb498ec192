// What a draw from a model is worth, said once for every figure of learning; and the stages that drew from a
// frozen model. Pure functions of rows.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "warpsmith/stats/bootstrap.h"
#include "warpsmith/store/results.h"

namespace warpsmith::report {

bool says_something(const store::SampleRow& sample);  // its verdict says something about the program
// The first turn of an answer. Those behind it were asked with the verdict of the one before: they are no
// independent draws. They count among best programs, verdicts and costs alone.
bool is_draw(const store::SampleRow& sample);
bool is_valid(const store::SampleRow& sample);       // right, and timed
bool is_novel(const store::SampleRow& sample);       // valid, and no known program: the model's own
bool is_fast_novel(const store::SampleRow& sample);  // novel, with a score above 1.01x
// Logarithm of what a draw gains: of max(1, speedup), 0 where it is not valid. The same where a known program
// counts as none.
double log_gain(const store::SampleRow& sample);
double log_novel_gain(const store::SampleRow& sample);

using Draws = std::vector<const store::SampleRow*>;  // of one task, at least one
// What shares and means of draws are of: draws that say something, without those of degenerate tasks.
std::vector<const store::SampleRow*> counted_draws(const store::Results& results);
using DrawsByTask = std::map<std::string, Draws>;
using DrawFigure = std::function<double(const Draws&)>;

// Means over the draws of a task.
double valid_share(const Draws& draws);
double novel_share(const Draws& draws);
double mean_log_gain(const Draws& draws);
double mean_log_novel_gain(const Draws& draws);

// The figure of each task, a row a task, as bootstraps take them.
std::vector<std::vector<double>> task_figures(const DrawsByTask& tasks, const DrawFigure& figure);
// How the mean of the figure changes, over the tasks that both have, paired. Throws std::invalid_argument
// where there is none.
stats::BootstrapInterval paired_change(const DrawsByTask& before, const DrawsByTask& after,
                                       const DrawFigure& figure,
                                       const stats::BootstrapSettings& settings = {});

// A stage of kind `measure` that drew programs from a frozen model: its counted draws by group and task.
// Points into the results.
struct FrozenModel {
  std::string stage, hash8;
  // Of an instance of a matrix over stages ("evaluate-sft"): the stage in the workflow, and the stage that
  // trained the model. Else empty.
  std::string base, of;
  std::map<std::string, DrawsByTask> groups;
  std::set<std::string> host_bound;  // tasks whose baseline waits for the host
  // Samples of a group, empty where it has none; `timed`: without tasks that are bound by the host, whose
  // speedups are launches saved.
  DrawsByTask draws(const std::string& group) const;
  DrawsByTask timed_draws(const std::string& group) const;
};

// Of current versions, in the order of the workflow.
std::vector<FrozenModel> frozen_models(const store::Results& results);
// Those of each matrix over stages, by its name in the workflow.
std::map<std::string, std::vector<const FrozenModel*>> by_matrix(const std::vector<FrozenModel>& models);
// Of these models, trained tasks first.
std::vector<std::string> groups_of(const std::vector<const FrozenModel*>& models);

}  // namespace warpsmith::report
