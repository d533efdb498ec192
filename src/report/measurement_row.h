// What several parts of the report ask of one measurement.
#pragma once

#include <string>

#include "warpsmith/store/results.h"

namespace warpsmith::report {

// A score over eager, which every one can be taken back to, or else over what it was timed with.
inline double over_eager_of(const Measurement& m) {
  return m.speedup * (m.baseline_ratio > 0 ? m.baseline_ratio : 1);
}

// Kind of the device that it was measured on; empty: not known.
inline std::string kind_of(const store::Results& results, const store::MeasurementRow& row) {
  return row.device < 0 ? "" : results.devices.at(static_cast<std::size_t>(row.device)).kind;
}

}  // namespace warpsmith::report
