// What is wrong with stages of a workflow that were read well: settings that contradict each other.
#pragma once

#include <filesystem>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/workflow/spec.h"

namespace warpsmith::workflow {

// `idle`: mistakes, too, each a request for GPUs that no program could use.
void check_stages(const std::vector<StageSpec>& stages, const std::filesystem::path& file,
                  Diagnostics& mistakes, Diagnostics& idle);

}  // namespace warpsmith::workflow
