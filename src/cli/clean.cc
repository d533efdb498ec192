// `warpsmith clean [RUN]`: shows what can go and how large it is; removes it with --yes.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>

#include "print.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/text.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/controller/run_folder.h"
#include "warpsmith/store/results.h"

namespace warpsmith::cli {

namespace {

struct Options {
  std::string run;
  bool yes = false, cache = false, all = false;
};

struct Part {
  fs::path path;
  std::string what;
  std::uint64_t bytes = 0;
};

// Results of a stage that are not the current one, as far as it has one, else all but the newest.
std::vector<plan::FormerResult> older_results(const std::vector<plan::FormerResult>& results,
                                              const std::string& current) {
  const auto kept = std::find_if(results.begin(), results.end(), [&](const plan::FormerResult& result) {
    return plan::hash8(result.hash) == current;
  });
  std::vector<plan::FormerResult> older = results;
  older.erase(older.begin() + (kept == results.end() ? 0 : kept - results.begin()));
  return older;
}

// The checkpoints of one version of a stage.
std::vector<fs::path> checkpoints(const fs::path& run, const std::string& stage, const std::string& hash) {
  const std::string stem = (run / controller::checkpoint_prefix(stage, hash)).filename().string() + "-";
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints", error))
    if (entry.path().filename().string().starts_with(stem)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

// Results that others of the same stage have replaced, with their checkpoints; what --force set aside; and
// the compile cache where asked for.
std::vector<Part> removable(const fs::path& run, const Options& options) {
  std::vector<Part> parts;
  if (options.all) {
    parts.push_back({run, "the whole run", 0});
  } else {
    std::map<std::string, std::string> current;
    for (const store::StageVersion& version : store::stage_versions(run))
      if (version.current) current[version.stage] = version.hash8;
    for (const auto& [stage, results] : controller::read_history(run))
      for (const plan::FormerResult& result : older_results(results, current[stage])) {
        parts.push_back({controller::stage_folder(run, stage, result.hash), "older result of " + stage, 0});
        for (const fs::path& checkpoint : checkpoints(run, stage, result.hash))
          parts.push_back({checkpoint, "its checkpoint", 0});
      }
    if (path_exists(run / "set_aside"))
      parts.push_back({run / "set_aside", "results set aside by --force", 0});
    if (options.cache && path_exists(run / "cache"))
      parts.push_back({run / "cache", "compiled candidates", 0});
  }
  for (Part& part : parts) part.bytes = controller::folder_bytes(part.path);
  return parts;
}

bool confirmed(const Options& options) {
  if (options.yes) return true;
  if (::isatty(STDIN_FILENO) != 1) return false;
  print("Remove these? [y/N] ");
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

int clean(const Options& options, CommandContext& context) {
  const fs::path run = find_run(context, options.run);
  const controller::RunLock lock(run);
  const std::vector<Part> parts = removable(run, options);
  std::uint64_t total = 0;
  Json list = Json::array();
  for (const Part& part : parts) {
    total += part.bytes;
    list.push_back({{"path", part.path.string()}, {"what", part.what}, {"bytes", part.bytes}});
    if (!context.json)
      print("%10s  %s  (%s)\n", format_size(part.bytes).c_str(), part.path.string().c_str(),
            part.what.c_str());
  }
  bool removed = false;
  if (!context.json) {
    if (parts.empty()) {
      print("%s holds %s and nothing that newer results have replaced\n", run.string().c_str(),
            format_size(controller::folder_bytes(run)).c_str());
      return kExitOk;
    }
    print("%10s  in all, of %s in %s\n", format_size(total).c_str(),
          format_size(controller::folder_bytes(run)).c_str(), run.string().c_str());
  }
  if (!parts.empty() && (context.json ? options.yes : confirmed(options))) {
    for (const Part& part : parts) fs::remove_all(part.path);
    removed = true;
  }
  if (context.json)
    print_json(context, {{"run", run.string()}, {"parts", list}, {"bytes", total}, {"removed", removed}});
  else
    print(removed ? "Removed.\n" : "Nothing was removed (--yes removes without asking).\n");
  return kExitOk;
}

}  // namespace

void add_clean(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(
      app, context, "clean", "Shows what newer results have replaced, with sizes, and removes it",
      "warpsmith clean quickstart --yes", [options, &context] { return clean(*options, context); });
  add_run_argument(*command, options->run);
  command->add_flag("--yes", options->yes, "Remove without asking");
  command->add_flag("--cache", options->cache, "Also the compiled candidates");
  command->add_flag("--all", options->all, "The whole run");
  add_json_flag(*command, context);
}

}  // namespace warpsmith::cli
