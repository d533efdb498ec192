// What a run's results say, in figures: pure functions of rows. Stages are in the order of `results.stages`,
// the workflow's, and each version of a stage has figures of its own. Mostly only current versions are
// wanted: store::current_versions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "warpsmith/report/baselines.h"
#include "warpsmith/stats/interval.h"
#include "warpsmith/store/results.h"

namespace warpsmith::report {

// How well a frozen model writes programs for one group of tasks ("train", "heldout_combination",
// "heldout_operation"). Speedups are unrounded scores. Every share is of the programs drawn: valid and
// distinct of all `samples`; wins, scores and draws of the `counted` ones, whose tasks are not bound by the
// host.
inline constexpr std::size_t kFewestTasks = 5;  // of which a bootstrap says how much a mean hangs on them
struct EvaluationRow {
  std::string stage, hash8, group;
  std::int64_t tasks = 0, samples = 0, valid = 0;
  std::int64_t repeated = 0;  // correct, and a program that no model wrote
  std::int64_t known = 0;  // these, and those that differ from one in names and constants of source or code
  std::int64_t novel = 0;  // the other correct ones: the model's own
  std::int64_t novel_programs = 0;  // distinct ones of them
  std::int64_t of_template = 0;     // novel ones that a template of the grammar writes, too
  std::int64_t host_bound = 0;      // tasks whose speedups are left out: their baseline waits for the host
  std::int64_t counted = 0;         // samples of the others
  // Over their novel programs; nothing where there is none.
  std::optional<double> mean, geometric_mean, quantile75, median, quantile25, max;
  // Shares of the counted samples; known ones count in neither.
  double wins = 0;               // the interval lies above 1.01x (stats::is_win)
  double above = 0;              // the score does: CUDA-L1's count
  double one_draw = 1;           // geometric mean over them of max(1, speedup); a failure counts 1
  double novel_draw = 1;         // the same where a known program counts 1, too
  double one_draw_no_floor = 0;  // geometric mean over them of the speedup; a failure counts 0.01
  double distinct = 0;           // share of distinct programs among all samples
  // 95 % intervals. Of shares of all samples: the wider of Wilson's, for draws from these tasks, and that of
  // a bootstrap over tasks, for other tasks of the kind.
  stats::Interval valid_interval, novel_interval, beyond_interval;
  // By a bootstrap over tasks; nothing where there are fewer than kFewestTasks.
  std::optional<stats::Interval> geometric_mean_interval, one_draw_interval, novel_draw_interval,
      one_draw_no_floor_interval;
  double novel_share() const {
    return samples > 0 ? static_cast<double>(novel) / static_cast<double>(samples) : 0;
  }
  // Of the novel ones that are not as a template.
  double beyond_share() const {
    return samples > 0 ? static_cast<double>(novel - of_template) / static_cast<double>(samples) : 0;
  }
  double valid_share() const {
    return samples > 0 ? static_cast<double>(valid) / static_cast<double>(samples) : 0;
  }
};

// Tasks that a program without any work would pass: their speedups say nothing, and no mean holds them.
std::set<std::string> degenerate_tasks(const store::Results& results);

// A row for each version of a stage and each group that it has counted draws of (draws.h): without samples of
// later turns, of verdict `unsupported` or `not_measured`, and of degenerate tasks.
std::vector<EvaluationRow> evaluation_rows(const store::Results& results);

// The same of neighbouring rounds of a stage that works in rounds, over all groups: of each round, or of
// several at once where it has more than kMostRoundRows. Other stages have no rows.
inline constexpr std::size_t kMostRoundRows = 40;
struct RoundRow {
  std::int64_t first = 0, last = 0;
  EvaluationRow figures;
};
std::vector<RoundRow> round_rows(const store::Results& results);

struct VerdictCounts {
  std::string stage, hash8;
  std::map<std::string, std::int64_t> counts;  // by verdict
};
// Of samples, of all turns, where a stage has them, else of its measurements and failed compiles.
std::vector<VerdictCounts> verdict_counts(const store::Results& results);

// The fastest correct program of each task over all stages, by its speedup over eager.
// The task's `win`: whether one of its correct programs is a win (stats::is_win).
struct BestKernel : CodeFacts {
  std::string task, candidate, stage, hash8, origin, source, reference;
  std::string degenerate;    // why its speedup says nothing; empty: it says something
  std::string author_stage;  // the stage that made it; `stage`: the one that measured it
  bool novel = false;        // a model wrote it, and it is no known program (store::SampleRow::known)
  // The fastest novel one; empty: there is none.
  std::string novel_candidate, novel_stage;
  double novel_speedup = 0;
  bool any_models = false;  // whether models wrote in this run at all
  double speedup = 0, low = 0, high = 0, baseline_ns = 0, candidate_ns = 0;
  bool imprecise = false, win = false;
  std::string direction;  // why score and times point in different directions; empty: they do not
  std::string shape;
  std::optional<double> roofline_share;  // of the time that the device allows at least: 1 is at the roofline
  std::string roofline_bound;            // "memory", "compute"
  std::optional<double> candidate_event_ns;  // a call by the candidate's own events
  bool host_bound = false;                   // the baseline waits for the host: its time is not the GPU's
  std::string baseline;                      // that of the score
  Comparison over;                           // all of them
  std::int64_t correct = 0, tried = 0;       // measurements of the task
  std::vector<std::int64_t> samples;         // as MeasurementRow has them; empty: they are not there
  bool divided = false;                      // they are eager's, and the score was divided
};
// The fastest program of each task. Where a later stage measured it again on that kind of device, its figures
// are from there: the fastest of many measurements is, in part, the luckiest.
std::vector<BestKernel> best_kernels(const store::Results& results);

// Of the best kernel of each task.
struct Headline {
  std::int64_t tasks = 0;
  std::int64_t degenerate = 0;  // tasks with a correct kernel that are left out
  std::int64_t host_bound = 0;  // the same, for their baseline waits for the host
  std::int64_t by_model = 0;    // tasks whose best kernel is a model's novel program
  double geometric_mean = 1, median = 1, mean = 1;
  double wins = 0;                     // share of tasks with a win (BestKernel::win)
  double above = 0;                    // share of tasks whose best score is above 1.01x: CUDA-L1's count
  std::vector<std::string> baselines;  // that the scores are over
  // Geometric mean, over tasks whose baselines were all timed; `lacking`: tasks of which one is missing.
  std::optional<double> over_best_baseline;
  std::int64_t lacking = 0;
};
// Without tasks whose baseline is bound by the host: what is measured there is launches saved.
Headline headline(const std::vector<BestKernel>& best);
// The same with them; nothing where there is no such task.
std::optional<Headline> headline_with_host_bound(const std::vector<BestKernel>& best);

}  // namespace warpsmith::report
