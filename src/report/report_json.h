// Rows of a report as JSON, for export and for the page's plots.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/report/cost.h"
#include "warpsmith/report/summary.h"

namespace warpsmith::report {

Json interval_json(const std::optional<stats::Interval>& interval);  // [low, high], or null
Json evaluation_json(const EvaluationRow& row);
Json cost_json(const CostRow& row);

}  // namespace warpsmith::report
