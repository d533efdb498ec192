#include "engine/alone.h"

#include "warpsmith/base/random.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::measure {

const std::vector<double>& Alone::times(int calls) {
  const auto found = times_.find(calls);
  return found != times_.end() ? found->second : times_again(calls);
}

const std::vector<double>& Alone::times_again(int calls) {
  return times_[calls] = take_(calls, random_key({key_, ++taken_}));
}

void Alone::compare_with(double agreement, int calls, Timing& timing) {
  timing.pair_ns = stats::median(to_doubles(timing.pairs.baseline_ns));
  const auto compare = [&](const std::vector<double>& alone) {
    timing.alone_ns = stats::median(alone);
    timing.alone_error = stats::median_error(alone) / timing.alone_ns;
    timing.baseline_agrees = baseline_agrees(timing, agreement);
  };
  compare(times(calls));
  if (!timing.baseline_agrees) compare(times_again(calls));
}

}  // namespace warpsmith::measure
