// Figures of a list of samples, for summaries and progress.
#pragma once

#include <string>
#include <vector>

#include "knowledge.h"
#include "samples.h"
#include "verifier.h"

namespace warpsmith::stages {

// One sample as the figures see it.
struct Counted {
  std::string task;
  const Known* known = nullptr;
  bool own = true;        // false: it is a known program, whose speed is not the stage's merit
  bool repeated = false;  // not own: it is a copy of a program of somebody else's, layout and comments aside
  bool of_template = false;  // own: a template writes the same for a task that a model is to solve
};

// {"samples", "ok", "valid_share", "distinct", "distinct_share", "distinct_forms", "distinct_form_share",
// "verdicts": {…},
//  "best", "best_author", "median", "mean", "geomean", "p25", "p75", "wins", "above_1_01",   over the correct
//  samples that are the stage's own; absent where there is none
//  "repeated", "known", "novel", "novel_programs", "of_template", "one_draw", "one_draw_unfloored",
//  "host_bound"}
// Speedups of tasks that are marked as degenerate, or whose baseline is bound by the host (stats::HostBound),
// count in none of the second and third line. host_bound: how many tasks are left out for it; absent: none.
// best_author: Origin::kind. wins: share whose interval lies above 1.01x (stats::is_win); above_1_01: share
// whose score does. known: correct samples that are not the stage's own; repeated: those of them that are
// copies; novel: correct ones that are, novel_programs: distinct ones of these; of_template: those of the
// novel ones that a template writes, too. one_draw: geometric mean over all samples of max(1, speedup), a
// sample without a correct program counting 1; unfloored: of the speedup, counting 0.01. `not_measured` and
// `unsupported` samples count in `samples`, `verdicts` and what is distinct, and nowhere else. distinct: by
// source; distinct_forms: by structure (method::normal_form). Both include the task.
Json figures(const std::vector<Counted>& samples, const TaskSet& tasks);

// The same with "groups": figures of the tasks of each group that has samples.
Json figures_by_group(const std::vector<Counted>& samples, const TaskSet& tasks);

// What a model wrote is the stage's own, unless it equals (names, constants, layout and comments aside) a
// program that a person, augmentation, a teacher or an import brought, for whatever task.
std::vector<Counted> counted(const std::vector<Sample>& samples, const Verifier& verifier);
// The candidates that the stage met, each as one sample, whoever wrote it.
std::vector<Counted> counted(const Verifier& verifier);

// {"candidate", "measurement", "folder", "expected", "known_from", "code"} of every candidate that the stage
// met.
Json candidates_json(const Verifier& verifier);

// {"id", "title", "level", "ops", "split", "reference", "degenerate"} of a task, for results.h5.
Json task_json(const TaskSet& tasks, const std::string& id);

// What all outputs begin with.
StageOutput begin_output(const workflow::StageSpec& spec);

// Last `n` points of a curve, as {"step", "loss"}.
Json curve_tail(const std::vector<Json>& curve, std::size_t n = 20);

}  // namespace warpsmith::stages
