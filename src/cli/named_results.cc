#include "named_results.h"

#include "warpsmith/base/paths.h"
#include "warpsmith/controller/attempts.h"

namespace warpsmith::cli {

namespace {

// Empty: `name` is to be a run's.
std::filesystem::path file_alone(const CommandContext& context, const std::string& name) {
  if (name.empty()) return {};
  for (const fs::path& path : {fs::path(name), context.results / name}) {
    if (!path_exists(path)) continue;
    if (!is_folder(path)) return path;
    if (path_exists(path / "run.json")) return {};
    if (path_exists(path / "results.h5")) return path / "results.h5";
  }
  return {};
}

}  // namespace

NamedResults named_results(const CommandContext& context, const std::string& name) {
  if (const fs::path file = file_alone(context, name); !file.empty())
    return {file, store::read_results(file), true};
  const fs::path run = find_run(context, name);
  controller::aggregate_run(run);
  return {run / "results.h5", controller::stored_results(run)};
}

}  // namespace warpsmith::cli
