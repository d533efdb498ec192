// The cost of a run in its page.
#pragma once

#include <string>
#include <vector>

#include "warpsmith/report/cost.h"

namespace warpsmith::report {

// With the sum in the foot.
std::string cost_table(const std::vector<CostRow>& rows);

}  // namespace warpsmith::report
