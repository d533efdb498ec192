// The cases of cheating that a run confirmed.
#pragma once

#include <filesystem>
#include <vector>

#include "warpsmith/records/hack.h"

namespace warpsmith::store {

// Every confirmed case in the records below `run_folder`, also of older versions of stages and of stages that
// are still at work or have failed: each candidate once a kind, where it was confirmed first in the order of
// stage_versions(), rounds and items. None of them has a date. Damaged records are left out with a warning.
std::vector<HackCase> read_hacks(const std::filesystem::path& run_folder);

}  // namespace warpsmith::store
