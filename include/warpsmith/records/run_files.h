// run.json and state.json of a run's folder, as everybody but their writer reads them. Format document:
// results/README.md.
#pragma once

#include <filesystem>

#include "warpsmith/base/json.h"

namespace warpsmith {

// Keys may be missing. Those that are read have values of the types that they should have; else they throw
// BadContent, naming the file and what is wrong.
Json read_run_json(const std::filesystem::path& run);
Json read_state_json(const std::filesystem::path& run);  // an empty object where there is no state.json

// Throws Json::exception where a value is of another type.
void check_state_json(const Json& state);

}  // namespace warpsmith
