// Whether one measurement is a win, and CUDA-L1's count beside it.
#pragma once

#include <optional>

#include "warpsmith/records/measurement.h"
#include "warpsmith/stats/wins.h"

namespace warpsmith::report {

// Nothing where nothing was timed. A program that is not `ok` is no win, however fast.
struct WinFlags {
  std::optional<bool> win, above;
};
inline WinFlags win_flags(const Measurement& m) {
  if (m.rounds == 0) return {};
  const bool ok = m.verdict == Verdict::kOk;
  return {ok && stats::is_win(m.speedup_low), ok && stats::is_above_bar(m.speedup)};
}

}  // namespace warpsmith::report
