// KernelBench's figures of a stage: fast_p, pass@k and the geometric mean. Pure functions of rows.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/stats/fast_p.h"
#include "warpsmith/stats/interval.h"
#include "warpsmith/store/results.h"

namespace warpsmith::report {

using FastPs = std::array<double, stats::kFastPs.size()>;

// pass@k, its mean over `tasks`: here those of which k samples at least were judged.
struct PassAtK {
  std::int64_t k = 0, tasks = 0;
  std::optional<double> value = {};              // nothing: of no task there were so many
  std::optional<stats::Interval> interval = {};  // 95 %, over tasks; only in learning.h
};

// Of a version of a stage and a group of tasks. Correct: verdict ok, with a speedup. Programs that repeat a
// person's count as samples that are not correct.
struct FastPRow {
  std::string stage, hash8, group;
  std::string authors;     // whose programs count: "model"; of a stage without a model also "all"
  std::int64_t tasks = 0;  // of the set, whether or not they have a program: the denominator
  std::int64_t degenerate = 0, host_bound = 0;  // of them; their speedups count here, and in no headline
  std::int64_t judged = 0, correct = 0;         // tasks with a sample that was judged, with a correct program
  std::int64_t least = 0, most = 0;             // judged samples of a task
  std::vector<double> speedups;                 // of the fastest correct program of each task
  FastPs best{};                                // fast_p of these
  std::optional<FastPs> one_draw;        // expected of one sample of each task; nothing: they are no draws
  std::optional<double> geometric_mean;  // of `speedups`
  std::vector<PassAtK> pass;             // empty: no draws of one model, as where it learns between rounds
};

// A row for each version of a stage that has samples and each group, two where a stage without a model
// measured programs of several authors. The set: the run's tasks of that group. Samples of later turns are
// no draws (draws.h) and count nowhere here.
std::vector<FastPRow> fast_p_rows(const store::Results& results);

std::string fast_p_html(const std::vector<FastPRow>& rows);
std::string fast_p_csv(const std::vector<FastPRow>& rows);
Json fast_p_json(const std::vector<FastPRow>& rows);

}  // namespace warpsmith::report
