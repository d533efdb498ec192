// The cost of a run in its page.
#pragma once

#include <string>
#include <vector>

#include "warpsmith/report/cost.h"

namespace warpsmith::report {

// With the sum in the foot.
std::string cost_table(const std::vector<CostRow>& rows, const std::string& currency);
// "<th>money, EUR</th>"; without a currency "<th>money</th>".
std::string money_head(const std::string& currency);

}  // namespace warpsmith::report
