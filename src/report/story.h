// The head of the page: what a run says, in a few sentences.
#pragma once

#include <string>
#include <vector>

#include "warpsmith/report/summary.h"
#include "warpsmith/store/results.h"

namespace warpsmith::report {

// Did it learn, what is new, which programs won, can it be trusted. `rows`: evaluation_rows().
std::string story_html(const store::Results& results, const std::vector<EvaluationRow>& rows,
                       const std::vector<BestKernel>& kernels);

}  // namespace warpsmith::report
