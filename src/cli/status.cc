// `warpsmith list` and `warpsmith status`: the runs that there are, and how far one is.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <thread>

#include "bars.h"
#include "print.h"
#include "progress.h"
#include "table.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/text.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/cli/command.h"
#include "warpsmith/controller/device_doubts.h"
#include "warpsmith/controller/run_folder.h"

namespace warpsmith::cli {

namespace {

// state.json as it is now true: a run whose controller is gone does not run.
Json read_state(const fs::path& run) {
  Json state = read_state_json(run);
  if (!state.contains("stages")) state["stages"] = Json::array();
  const bool alive = controller::RunLock::holder(run).has_value();
  if (!alive && state.value("state", "running") == "running")
    state["state"] = state.contains("epoch") ? "dead" : "not begun";
  state["controller"] = alive;
  return state;
}

// The run asked for; without a name, the one changed last whose state can be read.
fs::path find_run_with_state(const CommandContext& context, const std::string& name) {
  const fs::path found = find_run(context, name);
  if (!name.empty()) return found;
  std::string unreadable;
  for (const fs::path& folder : runs_newest_first(context.results)) {
    try {
      (void)read_state(folder);
      if (!unreadable.empty()) log_warning(unreadable + "showing an older run");
      return folder;
    } catch (const Error& e) {
      unreadable += std::string(e.what()) + "; ";
    }
  }
  return found;
}

// What `use` gives; BadContent where the run's state.json has values that it cannot take.
template <class Use>
auto with_state(const fs::path& run, const Use& use) {
  try {
    return use();
  } catch (const Json::exception& e) {
    const fs::path file = run / "state.json";
    throw BadContent(file,
                     file.string() + ": its values are not of the types that they should be: " + in_words(e));
  }
}

constexpr const char* kUnreadable = "unreadable";  // state of a run whose files say nothing

// A line of `list`. Nothing where the folder is no run's.
std::optional<Json> facts_of(const fs::path& folder) {
  Json facts = {{"name", folder.filename().string()},
                {"folder", folder.string()},
                {"workflow", ""},
                {"state", kUnreadable},
                {"created", 0},
                {"updated", 0},
                {"stages", 0},
                {"stages_finished", 0},
                {"replay_timings", ""}};
  try {
    if (!path_exists(folder / "run.json")) return std::nullopt;
    const Json run = read_run_json(folder);
    for (const char* key : {"workflow", "created", "replay_timings"})
      if (run.contains(key)) facts[key] = run.at(key);
    facts["updated"] = facts["created"];
    with_state(folder, [&] {
      const Json state = read_state(folder);
      std::size_t finished = 0;
      for (const Json& stage : state.at("stages")) finished += stage.value("state", "") == "finished";
      facts["updated"] = state.value("updated", facts.at("updated").get<std::int64_t>());
      facts["stages"] = state.at("stages").size();
      facts["stages_finished"] = finished;
      facts["state"] = state.value("state", "");
    });
  } catch (const Error& e) {  // damaged, or it may not be read
    facts["problem"] = e.what();
  }
  return facts;
}

std::vector<Table::Cell> cells_of(const Json& run) {
  std::vector<Table::Cell> row = {run.at("name").get<std::string>(), run.at("state").get<std::string>()};
  if (run.contains("problem")) {
    row.emplace_back(run.at("problem").get<std::string>());
    return row;
  }
  const bool replayed = !run.at("replay_timings").get<std::string>().empty();
  row.emplace_back(fmt::format("{} of {} stages  {}{}", run.at("stages_finished").dump(),
                               run.at("stages").dump(), time_text(run.at("updated").get<std::time_t>()),
                               replayed ? "  (timings replayed)" : ""));
  return row;
}

int list(CommandContext& context) {
  Json runs = Json::array();
  for (const fs::path& folder : folder_entries(context.results))
    if (std::optional<Json> facts = facts_of(folder)) runs.push_back(std::move(*facts));
  if (context.json) {
    print_json(context, runs);
    return kExitOk;
  }
  if (runs.empty())
    print("There are no runs in %s (start one: `warpsmith run FILE.yaml`)\n", context.results.string());
  Table table(context.terminal  // what reads the lines has runs alone
                  ? std::vector<Table::Column>{{"RUN"}, {"STATE"}, {"STAGES FINISHED, LAST CHANGE"}}
                  : std::vector<Table::Column>(3));
  for (const Json& run : runs) table.add(cells_of(run));
  if (!runs.empty()) print_text(stdout, table.text(context));
  return kExitOk;
}

struct StatusOptions {
  std::string run;
  bool watch = false;
  double every_s = 2;
};

std::string head_text(const fs::path& folder, const Json& state) {
  const std::string name = state.value("state", "");
  std::string out = fmt::format("{}: {}", folder.string(), name);
  if (name == "dead") out += " (its controller was killed; the same `warpsmith run` command goes on)";
  if (state.value("controller", false)) out += fmt::format(", process {}", state.value("pid", 0));
  if (state.contains("updated")) out += ", " + time_text(state.at("updated").get<std::time_t>());
  return out;
}

std::string status_text(const CommandContext& context, const fs::path& folder, const Json& state) {
  std::string out = head_text(folder, state) + "\n";
  if (!state.at("stages").empty()) out += state_table(context, state);
  if (state.value("controller", false)) out += queue_text(state.value("executor", Json::object()));
  return out;
}

// The state and how it is shown.
struct Shown {
  Json state;
  std::string text;
  int exit_code = kExitOk;
};

Shown show_unreadable(const fs::path& folder, const Error& e) {
  Shown shown;
  shown.state = {{"state", kUnreadable},
                 {"problem", e.what()},
                 {"stages", Json::array()},
                 {"controller", controller::RunLock::holder(folder).has_value()}};
  shown.text = fmt::format("{}: {}\n  {}\n", folder.string(), kUnreadable, e.what());
  if (dynamic_cast<const BadContent*>(&e) != nullptr)
    shown.text += "  The same `warpsmith run` command sets the file aside and goes on.\n";
  shown.exit_code = e.exit_code();
  return shown;
}

// What a terminal shows while the run goes on.
std::string watched_text(const CommandContext& context, const fs::path& folder, const Json& state,
                         StageRates& rates) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  for (const Json& stage : state.at("stages"))
    if (stage.value("state", "") == "running") rates.see(std::chrono::duration<double>(now).count(), stage);
  return watch_text(context, screen_of(stdout), head_text(folder, state), state, rates.all());
}

// `rates`: null where it is shown once, as lines.
Shown show(const CommandContext& context, const fs::path& folder, StageRates* rates) {
  try {
    Shown shown{read_state(folder), ""};
    shown.state["doubted_gpus"] = controller::to_json(controller::device_doubts(folder));
    shown.text = with_state(folder, [&] {
      return rates != nullptr && shown.state.at("controller").get<bool>()
                 ? watched_text(context, folder, shown.state, *rates)
                 : status_text(context, folder, shown.state);
    });
    if (shown.state.value("state", "") == "failed") shown.exit_code = kExitFailed;
    return shown;
  } catch (const Error& e) {
    return show_unreadable(folder, e);
  }
}

int status(const StatusOptions& options, CommandContext& context) {
  const fs::path folder = find_run_with_state(context, options.run);
  const bool draws = options.watch && context.terminal && !context.json;
  StageRates rates;
  int drawn = 0;
  for (;;) {
    const Shown shown = show(context, folder, draws ? &rates : nullptr);
    if (context.json) {
      print_json(context, shown.state);
    } else {
      if (draws) erase_lines(stdout, drawn);
      print_text(stdout, shown.text);
      drawn = static_cast<int>(std::count(shown.text.begin(), shown.text.end(), '\n'));
    }
    std::fflush(stdout);
    if (!options.watch || !shown.state.at("controller").get<bool>()) return shown.exit_code;
    std::this_thread::sleep_for(std::chrono::duration<double>(options.every_s));
  }
}

}  // namespace

void add_list(CLI::App& app, CommandContext& context) {
  CLI::App* command = add_command(app, context, "list", "Lists the runs", "warpsmith list --json",
                                  [&context] { return list(context); });
  add_json_flag(*command, context);
}

void add_status(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* command = add_command(
      app, context, "status", "Shows how far a run is (exit code 1 where it failed)",
      "warpsmith status quickstart --watch", [options, &context] { return status(*options, context); });
  add_run_argument(*command, options->run);
  command->add_flag("--watch", options->watch, "Show it again and again until its controller ends");
  command->add_option("--every", options->every_s, "Seconds between two looks")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  add_json_flag(*command, context);
}

}  // namespace warpsmith::cli
