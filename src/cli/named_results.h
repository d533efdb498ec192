// What a command reads results from: a run, whose results.h5 is brought up to date first, or a results.h5
// alone.
#pragma once

#include <filesystem>
#include <string>

#include "warpsmith/cli/command.h"
#include "warpsmith/store/results.h"

namespace warpsmith::cli {

struct NamedResults {
  std::filesystem::path file;
  store::Results results;  // of all versions of stages
  bool is_alone = false;   // it is no run's
};
// `name`: a run's as find_run() takes it, the path of an HDF5 file, or a folder with a results.h5 and no
// run.json. Throws Error.
NamedResults named_results(const CommandContext& context, const std::string& name);

}  // namespace warpsmith::cli
