// `warpsmith logs STAGE[/round[/shard]]`: what the programs of a stage printed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "print.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/text.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/controller/journal_view.h"
#include "warpsmith/controller/run_folder.h"

namespace warpsmith::cli {

namespace {

struct Options {
  std::string what, run;
  int tail = 0;
  bool paths = false;
};

int number_from(const std::string& text, const char* what) {
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos)
    throw Error("`" + text + "` is no " + what + " (STAGE[/round[/shard]])", kExitUsage);
  return std::stoi(text);
}

std::string last_lines(const std::string& text, int count) {
  if (count <= 0) return text;
  std::size_t at = text.size();
  if (at > 0 && text[at - 1] == '\n') --at;
  while (count > 0 && at > 0) {
    const std::size_t newline = text.rfind('\n', at - 1);
    if (newline == std::string::npos) return text;
    at = newline;
    --count;
  }
  return text.substr(count == 0 ? at + 1 : 0);
}

int logs(const Options& options, CommandContext& context) {
  const fs::path run = find_run(context, options.run);
  const std::vector<std::string> parts = split(options.what, '/');
  if (parts.size() > 3) throw Error("`" + options.what + "` is not STAGE[/round[/shard]]", kExitUsage);
  const int round = parts.size() > 1 ? number_from(parts[1], "round") : -1;
  const int shard = parts.size() > 2 ? number_from(parts[2], "shard") : -1;
  const controller::JournalView view = controller::view_journal(run);
  const controller::ExecutionHistory* execution = view.newest(parts[0]);
  if (execution == nullptr)
    throw Error("stage `" + parts[0] + "` has not begun in " + run.string() +
                    did_you_mean(parts[0], view.stages(), {.before = " (", .after = ")"}),
                kExitUsage);

  Json list = Json::array();
  for (const std::uint32_t number : execution->jobs) {
    const controller::JobHistory& job = view.jobs[number];
    if (round >= 0 && job.round != round) continue;
    const fs::path folder = controller::job_folder(
        controller::stage_folder(run, execution->stage, execution->hash), job.round, job.name);
    for (std::uint32_t s = 0; s < job.shards; ++s) {
      if (shard >= 0 && s != static_cast<std::uint32_t>(shard)) continue;
      const fs::path log = folder / std::to_string(s) / "log.txt";
      if (!path_exists(log)) continue;
      list.push_back({{"round", job.round}, {"job", job.name}, {"shard", s}, {"log", log.string()}});
    }
  }
  if (context.json) {
    print_json(context, list);
    return kExitOk;
  }
  if (list.empty()) print_error("There are no logs of %s yet.\n", options.what.c_str());
  for (const Json& one : list) {
    const std::string path = one.at("log").get<std::string>();
    if (options.paths) {
      print("%s\n", path.c_str());
      continue;
    }
    print("%s\n", paint(context, "bold", fmt::format("== {} ==", path)).c_str());
    const std::string text = last_lines(read_file(path), options.tail);
    print_text(stdout, text);
  }
  return kExitOk;
}

}  // namespace

void add_logs(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(app, context, "logs", "Shows what the programs of a stage printed",
                                  "warpsmith logs contrastive/3 --tail 20",
                                  [options, &context] { return logs(*options, context); });
  command->add_option("STAGE", options->what, "STAGE[/round[/shard]]")->required();
  add_run_argument(*command, options->run, "--run");
  command->add_option("--tail", options->tail, "Only the last lines of each log");
  command->add_flag("--paths", options->paths, "Only where the logs lie");
  add_json_flag(*command, context);
}

}  // namespace warpsmith::cli
