// Reading `dataset:` of a workflow file.
#pragma once

#include <optional>

#include "warpsmith/workflow/load.h"
#include "warpsmith/yaml/node.h"

namespace warpsmith::workflow {

// Folders of tasks are relative to `base`. Returns what is wrong where the folder of tasks is not there: that
// is no mistake in every workflow.
std::optional<Diagnostic> read_dataset(const yaml::Node& node, const LoadOptions& options,
                                       const std::filesystem::path& base, DatasetSettings& dataset,
                                       Diagnostics& mistakes);

}  // namespace warpsmith::workflow
