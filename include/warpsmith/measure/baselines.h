// The baselines that a candidate is compared with, and how a score over one of them is had.
//
// Every candidate is timed in pairs with `eager` alone. Each other baseline is timed in pairs with `eager` as
// well, by the same protocol, once for a task and device, in a process of its own with its own flags. The
// speedup over a baseline is the quotient of the two (stats/ratio.h). Why not in pairs with each candidate:
//   - `torch_compile` lives in a python3: a round would go through two processes that hold the GPU in turn;
//   - five pairs would cost five times as much for each candidate, and the quotient is as exact, its interval
//     holding both parts;
//   - the error of the baseline's part is common to all candidates of a task: it never changes their order,
//     as an error of each pair would.
// What it takes for granted: that `eager` is the same program in both. In one program it is; that Python's
// eager takes as long as the TorchScript that we run, within 3 %, is what a test and `gpu_bench python_eager`
// look at, in pairs within one python3. The raw times that go with a candidate are those of the pair, of
// eager and of the candidate; Measurement::baseline_ratio says that its score was divided, and by what.
//
// `eager` itself is timed against a second copy of itself: its ratio must be 1, and says how good the others
// are.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "warpsmith/measure/measurer.h"
#include "warpsmith/measure/pairs.h"
#include "warpsmith/records/baseline.h"
#include "warpsmith/records/measurement.h"

namespace warpsmith::measure {

// A row without a number: `missing`, for no reason yet.
BaselineTiming blank_timing(const Settings& settings, const task::Task& task, const std::string& name);

// Under which name the row of a task is kept: all that its number depends on.
std::string cache_key(const Settings& settings, const task::Task& task, const std::string& name);

// What the pair of eager (as its baseline) and another baseline (as its candidate) came to. `missing` with a
// reason where that gave a wrong answer or where its buckets disagree.
void write_pair(const Settings& settings, const PairResult& pairs, int calls, BaselineTiming& timing);
// The pair that `take` takes by `pairs`. One whose buckets disagree is taken once more, by another key: a
// host that is busy for a moment is no reason to have no baseline.
void write_steady_pair(const Settings& settings, PairSettings& pairs, const std::function<PairResult()>& take,
                       BaselineTiming& timing);

// A measurement over eager as one over `baseline`, rewards and intervals with it. Where there is no number of
// that baseline and the candidate was right, it ends as not_measured, with the reason. Does nothing to other
// verdicts' numbers where there are none.
void divide(Measurement& measurement, const BaselineTiming& baseline);

}  // namespace warpsmith::measure
