#include "warpsmith/cli/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>

#include "print.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/text.h"

namespace warpsmith::cli {

namespace {

// "did you mean `x`? " where a run has a name like it.
std::string run_meant(const fs::path& results, const std::string& name) {
  std::vector<std::string> known;
  for (const fs::path& run : runs_newest_first(results)) known.push_back(run.filename().string());
  return did_you_mean(name, known, {.before = "", .after = " "});
}

const char* name_of(Word word) { return word == Word::kRun ? "is a run" : "is a workflow file"; }

}  // namespace

CLI::App* add_command(CLI::App& app, CommandContext& context, const std::string& name,
                      const std::string& what, const std::string& example, std::function<int()> action) {
  CLI::App* command = app.add_subcommand(name, what);
  command->footer("Example:\n  " + example);
  command->callback([&context, action = std::move(action)] { context.action = action; });
  return command;
}

// A check that refuses nothing and shows nothing in --help: its name says what the words are.
CLI::Option* expect(Word word, CLI::Option* option) {
  return option->check(CLI::Validator([](std::string&) { return std::string(); }, "", name_of(word)));
}

bool expects(Word word, CLI::Option& option) {
  try {
    return option.get_validator(name_of(word)) != nullptr;
  } catch (const CLI::OptionNotFound&) {
    return false;
  }
}

CLI::Option* add_run_argument(CLI::App& command, std::string& run, const std::string& name) {
  return expect(Word::kRun,
                command.add_option(name, run, "Name or folder of the run (default: the one changed last)"));
}

CLI::Option* add_results_argument(CLI::App& command, std::string& run) {
  return expect(Word::kRun, command.add_option("RUN", run,
                                               "Name or folder of the run (default: the one changed last), "
                                               "or a results.h5 alone"));
}

void add_json_flag(CLI::App& command, CommandContext& context) {
  command.add_flag("--json", context.json, "Answer with one JSON value on stdout");
}

void add_seed_option(CLI::App& command, std::optional<std::uint64_t>& seed) {
  command.add_option_function<std::string>(
      "--seed",
      [&seed](const std::string& text) {
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size() || value < 0)
          throw CLI::ValidationError("--seed", "`" + text + "` is no number from 0 to 2^63 - 1");
        seed = static_cast<std::uint64_t>(value);
      },
      "Seed instead of the file's");
}

void add_override_options(CLI::App& command, std::vector<std::string>& overrides) {
  command.add_option("--set", overrides, "PATH=VALUE in the workflow, such as params.steps=100")
      ->allow_extra_args(false);
  command.add_option_function<std::uint64_t>(
      "--split-seed",
      [&overrides](std::uint64_t seed) {
        overrides.push_back("dataset.synthesize.split_seed=" + std::to_string(seed));
      },
      "Which tasks of `dataset: {synthesize: {…}}` are held out, instead of the file's");
}

std::vector<fs::path> runs_newest_first(const fs::path& results) {
  std::vector<std::pair<fs::file_time_type, fs::path>> runs;
  for (const fs::path& folder : folder_entries(results)) {
    for (const char* file : {"state.json", "run.json"}) {
      std::error_code missing;
      const auto time = fs::last_write_time(folder / file, missing);
      if (missing) continue;
      runs.emplace_back(time, folder);
      break;
    }
  }
  std::stable_sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<fs::path> folders;
  for (auto& [time, folder] : runs) folders.push_back(std::move(folder));
  return folders;
}

fs::path find_run(const CommandContext& context, const std::string& name) {
  if (!name.empty()) {
    std::optional<Error> unreadable;
    for (const fs::path& folder : {fs::path(name), context.results / name}) {
      try {
        if (path_exists(folder / "run.json")) return folder;
      } catch (const Error& e) {
        if (!unreadable) unreadable = e;
      }
    }
    if (unreadable) throw Error(*unreadable);
    throw Error("there is no run `" + name + "`: neither it nor " + (context.results / name).string() +
                    " holds a run.json (" + run_meant(context.results, name) +
                    "`warpsmith list` shows the runs)",
                kExitUsage);
  }
  const std::vector<fs::path> runs = runs_newest_first(context.results);
  if (runs.empty())
    throw Error("there is no run in " + context.results.string() + " (start one: `warpsmith run FILE.yaml`)",
                kExitUsage);
  return runs.front();
}

std::string did_you_mean(std::string_view word, std::span<const std::string> known, Around around) {
  const std::optional<std::string> nearest = nearest_word(word, known);
  if (!nearest) return "";
  return std::string(around.before) + "did you mean `" + *nearest + "`?" + std::string(around.after);
}

void print_json(const CommandContext& context, const Json& value) {
  print("%s\n", value.dump(context.terminal ? 2 : -1, ' ', false, Json::error_handler_t::replace).c_str());
}

void print_diagnostics(const Diagnostics& diagnostics) {
  for (const Diagnostic& d : diagnostics) print_error("%s\n", to_string(d).c_str());
}

std::string paint(const CommandContext& context, std::string_view colour, std::string_view text) {
  if (!context.colour) return std::string(text);
  const char* code = colour == "red"      ? "31"
                     : colour == "green"  ? "32"
                     : colour == "yellow" ? "33"
                     : colour == "bold"   ? "1"
                                          : "2";
  return colour_mark(code) + std::string(text) + colour_mark("0");
}

}  // namespace warpsmith::cli
