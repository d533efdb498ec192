// Synthesised tasks in a folder that nobody had to make: they are made once and kept in the user's cache.
#pragma once

#include <filesystem>

#include "warpsmith/workflow/spec.h"

namespace warpsmith::cli {

// The folder of the tasks that the settings make, and of links to those of `people`, if it is not empty.
// Throws Error where the grammar has not so many, or the cache cannot be written.
std::filesystem::path synthesised_tasks(const workflow::SynthesizeSettings& settings,
                                        const std::filesystem::path& people);

}  // namespace warpsmith::cli
