// Score and times of a measurement that point in different directions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "warpsmith/store/results.h"

namespace warpsmith::report {

// Why: the score is the median of bucket means of the rounds' paired log-ratios, the times are medians of
// each side alone. Empty where both say faster, or both slower. `samples`: Results::samples.
std::string direction_words(const store::MeasurementRow& row, const std::vector<std::int64_t>& samples);

}  // namespace warpsmith::report
