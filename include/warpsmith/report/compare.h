// Two runs side by side, or a run and scores that others published. Pure functions of rows.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/report/published.h"
#include "warpsmith/stats/ratio.h"
#include "warpsmith/store/results.h"

namespace warpsmith::report {

// What a side says of a program of a task.
struct Scored {
  std::string task, candidate;    // id of the program; empty: not known
  std::string device, baseline;   // kind of device, and what the speedup is over; empty: not known
  std::string verdict;            // empty: published scores have none
  std::optional<double> speedup;  // where the verdict is ok, or it was published
  double low = 0, high = 0;       // its 95 % interval; 0: there is none
  std::string math, shape;        // that it was timed with; empty: not known
  std::string note;               // why a published score is none: "no kernel"
  // "1.50× [1.49, 1.51]", a verdict, or the note.
  std::string text() const;
};

struct Side {
  std::string name;
  bool published = false;
  std::vector<Scored> scores;     // in the order in which they were measured
  std::set<std::string> devices;  // names, as the driver says
  bool replayed = false;          // its scores are another run's
};

// Over which baseline a run's speedups are: the one that each was timed with, or all that were timed
// (baselines.h), as published files have them.
enum class Over { kOwn, kAll };
Side side_of(const store::Results& results, Over over = Over::kOwn);
// Scores over those baselines that the run has, too. A problem gets the name of the run's task that is the
// same one (kernelbench.h), else "level1/19"; a kernel gets the id of the task's candidate of equal text.
// `device`: kind instead of what the file says.
Side side_of(const Published& published, const std::string& name, const store::Results& run,
             const std::string& device = "");

// A task, or a program, on one kind of device over one baseline, on both sides.
struct Pair {
  std::string task, candidate;  // candidate: empty in a pair of tasks
  std::string device, baseline;
  std::optional<Scored> a, b;
  std::optional<stats::Ratio> ratio;  // speedup of b by that of a
  bool has_interval = false;          // of the ratio: both sides have one
  std::string why;                    // why there is no ratio although both have a speedup
  bool significant() const { return has_interval && (ratio->low > 1 || ratio->high < 1); }
  // Both have a verdict, and not the same one.
  bool changed() const;
  bool no_longer_ok() const;  // changed, from ok
  bool now_ok() const;        // changed, to ok
};

struct Pairing {
  std::vector<Pair> rows;  // by task, device and baseline
  std::size_t paired = 0, only_a = 0, only_b = 0, ratios = 0;
  std::optional<double> geometric_mean, median;  // of the ratios
  std::size_t faster = 0, slower = 0;            // b against a, significantly
  // Met on both sides, but never on the same kind of device over the same baseline: "gelu: A on H100 over
  // eager, B on L40 over eager".
  std::vector<std::string> apart;
};

struct RunComparison {
  std::string a, b;
  bool published = false;  // b's scores are
  Pairing tasks;           // the fastest correct program of each task
  Pairing programs;        // those that both sides have measured
  std::vector<std::string> notes;
};

// Of a program that a side measured several times on a device over a baseline, the last measurement counts in
// `programs`; the fastest correct one of a task in `tasks`.
RunComparison compare_sides(const Side& a, const Side& b);

Json run_comparison_json(const RunComparison& comparison);
// A line a pair; `by_program`: of the programs, else of the tasks.
std::string run_comparison_csv(const RunComparison& comparison, bool by_program);

}  // namespace warpsmith::report
