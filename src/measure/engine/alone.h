// What the baseline takes with nothing beside it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "timing/judge.h"

namespace warpsmith::measure {

class Alone {
 public:
  // Takes some rows of `calls` calls of the baseline: nanoseconds a call. Values and order hang on `key`.
  using Take = std::function<std::vector<double>(int calls, std::uint64_t key)>;
  // `key`: of the first times; later ones have others.
  Alone(std::uint64_t key, Take take) : key_(key), take_(std::move(take)) {}
  // Taken once for each length of row, until they are taken again or forgotten.
  const std::vector<double>& times(int calls);
  const std::vector<double>& times_again(int calls);
  void forget() { times_.clear(); }
  // Notes in `timing` what the baseline took alone, and whether it took about as long in the pair: not over
  // `agreement` times apart, beyond what the scatter of both explains. Where it did not, the time alone is
  // taken again before that counts against the candidate: a machine drifts.
  void compare_with(double agreement, int calls, Timing& timing);

 private:
  std::uint64_t key_, taken_ = 0;
  Take take_;
  std::map<int, std::vector<double>> times_;
};

}  // namespace warpsmith::measure
