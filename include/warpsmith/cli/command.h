// How a command of `warpsmith` joins the program: one file a command in src/cli, one function add_NAME each.
//
//   void add_list(CLI::App& app, CommandContext& context) {
//     auto options = std::make_shared<Options>();
//     CLI::App* command = add_command(app, context, "list", "Lists runs", "warpsmith list --json",
//                                     [options, &context] { return list(*options, context); });
//     command->add_option("RUN", options->run, "…");
//     add_json_flag(*command, context);
//   }
//
// Parsing only notes which action is wanted; main() runs it afterwards, catches Error and InvalidInput,
// prints them on stderr and exits with their code (warpsmith/base/error.h). An action returns one of
// ExitCode's values. What a person or a script asked for goes to stdout, everything else to stderr.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/base/json.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace warpsmith::cli {

// What the program was built from, as --version says it. Empty: not known, or built without.
struct Build {
  std::string version, commit, torch, cuda;
};

// What all commands share. Lives as long as main().
struct CommandContext {
  bool json = false;                          // --json, where a command offers it
  bool terminal = false;                      // stdout is a terminal: progress may be redrawn
  bool colour = false;                        // … and NO_COLOR is not set
  std::filesystem::path results = "results";  // --results: the folder that holds the runs
  Build build;                                // of this program; what runs is recorded with it
  std::function<int()> action;                // of the command that was given
};

// Adds a command with an example at the end of its --help. `action` runs after parsing and returns the exit
// code.
CLI::App* add_command(CLI::App& app, CommandContext& context, const std::string& name,
                      const std::string& what, const std::string& example, std::function<int()> action);

// What an option's words are, for completions. Of the others they are one of a list, or a file.
enum class Word { kRun, kWorkflow };
CLI::Option* expect(Word word, CLI::Option* option);  // returns `option`
bool expects(Word word, CLI::Option& option);

// The run that a command is about: `name` is RUN, or an option.
CLI::Option* add_run_argument(CLI::App& command, std::string& run, const std::string& name = "RUN");
// The same, or a results.h5 (named_results.h).
CLI::Option* add_results_argument(CLI::App& command, std::string& run);
// Offers --json.
void add_json_flag(CLI::App& command, CommandContext& context);
// --seed N, from 0 to 2^63 - 1 as in a workflow file.
void add_seed_option(CLI::App& command, std::optional<std::uint64_t>& seed);
// --set, and --split-seed N, which sets `dataset.synthesize.split_seed`.
void add_override_options(CLI::App& command, std::vector<std::string>& overrides);

// A run's folder from what the user wrote: a path of a folder with run.json, or a name below context.results;
// with an empty name the run that was changed last. Throws Error with kExitUsage where there is none.
std::filesystem::path find_run(const CommandContext& context, const std::string& name);

// Folders below `results` with a run.json or a state.json, the one changed last first.
std::vector<std::filesystem::path> runs_newest_first(const std::filesystem::path& results);

// "did you mean `status`?" between `around`'s two texts, where one of `known` is near to `word`; else
// nothing.
struct Around {
  std::string_view before, after;
};
std::string did_you_mean(std::string_view word, std::span<const std::string> known, Around around);

// One value on stdout, indented where stdout is a terminal.
void print_json(const CommandContext& context, const Json& value);

// Each as "file:line:column: message (hint)" on stderr.
void print_diagnostics(const Diagnostics& diagnostics);

// `text` in an ANSI colour ("red", "green", "yellow", "bold", "dim") where context.colour is on, else
// unchanged.
std::string paint(const CommandContext& context, std::string_view colour, std::string_view text);

void add_bench(CLI::App& app, CommandContext& context);
void add_import(CLI::App& app, CommandContext& context);
void add_validate(CLI::App& app, CommandContext& context);
void add_plan(CLI::App& app, CommandContext& context);
void add_schema(CLI::App& app, CommandContext& context);
void add_run(CLI::App& app, CommandContext& context);
void add_sweep(CLI::App& app, CommandContext& context);
void add_tasks(CLI::App& app, CommandContext& context);
void add_list(CLI::App& app, CommandContext& context);
void add_status(CLI::App& app, CommandContext& context);
void add_logs(CLI::App& app, CommandContext& context);
void add_why(CLI::App& app, CommandContext& context);
void add_cancel(CLI::App& app, CommandContext& context);
void add_clean(CLI::App& app, CommandContext& context);
void add_pack(CLI::App& app, CommandContext& context);  // and `unpack`
void add_aggregate(CLI::App& app, CommandContext& context);
void add_report(CLI::App& app, CommandContext& context);
void add_compare(CLI::App& app, CommandContext& context);
void add_hacks(CLI::App& app, CommandContext& context);
void add_export(CLI::App& app, CommandContext& context);
void add_doctor(CLI::App& app, CommandContext& context);
void add_open(CLI::App& app, CommandContext& context);
void add_completions(CLI::App& app, CommandContext& context);
void add_man(CLI::App& app, CommandContext& context);

}  // namespace warpsmith::cli
