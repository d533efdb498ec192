// A program's speedup over each baseline of its task, and over the best of them. Pure functions of rows.
//
// Programs are timed in pairs with one baseline, and the others once a task against `eager`: a speedup over
// one of them is a quotient (stats/ratio.h), and its interval holds both parts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/stats/ratio.h"
#include "warpsmith/store/results.h"

namespace warpsmith::report {

struct OverBaseline {
  std::string name;
  std::optional<stats::Ratio> speedup;  // nothing: see `why`
  std::string why;                      // "missing: there is no python3 here", "not covered: …"
};

struct Comparison {
  std::vector<OverBaseline> all;  // eager first, then as they were timed
  std::string best;               // the fastest baseline of those that have a number
  std::optional<stats::Ratio> over_best;
  // Those that were to be timed and have none: one of them may be faster than `best`.
  std::vector<std::string> missing;
};

// Of a measurement of `results`; empty where it has no speedup. Where no baselines were timed: over the one
// that it was timed in pairs with.
Comparison compare_with_baselines(const store::Results& results, const store::MeasurementRow& row);

// Names in the order of their rows.
std::vector<std::string> baseline_names(const store::Results& results);

// The section of the page: a row a task. Empty where no baselines were timed.
std::string baselines_html(const store::Results& results);
// "2.31× over eager, 1.20× over cuda_graph, …; 1.20× over the best, cuda_graph"; where one is missing
// "…; 1.20× over the best that was timed, cuda_graph"
std::string comparison_text(const Comparison& comparison);
// {"eager": {"speedup", "interval"}, "torch_compile": {"why"}, …}
Json comparison_json(const Comparison& comparison);
Json baselines_json(const store::Results& results);

}  // namespace warpsmith::report
