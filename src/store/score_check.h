// A record's score against the raw timings that it was made of.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "warpsmith/records/measurement.h"

namespace warpsmith::store {

// What does not agree, in words; empty: all does, or the measurement was not timed. `samples`: all times of
// the baseline, then all of the candidate, ns a call. `buckets`: of the protocol; 0: not known, then any
// number will do. Score, variance and medians are computed again (stats/score.h), with means or medians of
// buckets, whichever fits. Of the interval the samples give the least width only (it also depends on how many
// places in memory there were, and on the baseline's own): it must be as wide and symmetrical about the
// score.
std::string score_problem(const Measurement& m, std::span<const std::int64_t> samples, int buckets);

}  // namespace warpsmith::store
