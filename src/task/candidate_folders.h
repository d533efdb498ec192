// Folders of candidates by the verdict that they must get.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warpsmith/base/error.h"

namespace warpsmith::task {

// Names in `folder` that do not begin with a dot, as paths, sorted.
std::vector<std::filesystem::path> sorted_names(const std::filesystem::path& folder,
                                                Diagnostics& diagnostics);

// Nothing where it cannot be read: `diagnostics` says why.
std::optional<std::string> read_source(const std::filesystem::path& path, Diagnostics& diagnostics);

// {verdict, folder} of each folder in `root` that is named as a verdict which a candidate can be made to get,
// or wrong_hidden. Nothing where there is no `root`.
std::vector<std::pair<std::string, std::filesystem::path>> folders_by_verdict(
    const std::filesystem::path& root, Diagnostics& diagnostics);

}  // namespace warpsmith::task
