// `warpsmith tasks synthesize`: tasks from a grammar, with programs for them, as a folder of tasks or as
// modules in KernelBench's form.
#include "tasks_synthesize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>

#include "print.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/text.h"
#include "warpsmith/synthesis/write.h"
#include "warpsmith/workflow/load.h"

namespace warpsmith::cli {

namespace {

struct Options {
  synthesis::Settings settings;
  std::string into, form = "task";
  bool programs = true;
  std::vector<std::string> without;  // folders of tasks
};

// A folder that is there is somebody's.
void check_target(const fs::path& into) {
  std::error_code error;
  if (path_exists(into) && !(fs::is_directory(into, error) && fs::is_empty(into, error)))
    throw Error("--into: " + into.string() + " is there already, and not empty", kExitUsage);
}

int synthesize_tasks(const Options& options, CommandContext& context) {
  if (options.form != "task" && options.form != "kernelbench")
    throw Error("--form: task or kernelbench", kExitUsage);
  if (options.into.empty()) throw Error("--into: name a folder", kExitUsage);
  check_target(options.into);
  synthesis::Settings settings = options.settings;
  for (const std::string& folder : options.without) synthesis::leave_out(folder, settings);
  const synthesis::Synthesis made = synthesis::synthesize(settings);
  const bool modules = options.form == "kernelbench";
  synthesis::write_tasks(made, settings, options.into,
                         modules ? synthesis::TaskForm::kKernelBench : synthesis::TaskForm::kTask,
                         options.programs);
  if (context.json) {
    print_json(context, synthesis::summary_of(made, settings));
    return kExitOk;
  }
  std::map<std::string, int> splits;
  for (const synthesis::Synthesised& one : made.tasks) ++splits[one.split];
  const synthesis::Dropped& dropped = made.dropped;
  std::string text;
  for (const auto& [split, count] : splits) text += fmt::format("{:<22} {} tasks\n", split, count);
  text += fmt::format("held out: operators {}; {} pairs\n", fmt::join(made.operators_out, ", "),
                      made.pairs_out.size());
  text += fmt::format(
      "dropped: {} known, {} duplicates, {} degenerate, {} with a step that changes nothing, {} with nothing "
      "to gain, {} with long programs\n",
      dropped.known, dropped.duplicate, dropped.degenerate, dropped.redundant, dropped.without_gain,
      dropped.long_programs);
  text += fmt::format("in {}\n", options.into);
  print_text(stdout, text);
  return kExitOk;
}

// A value as people write it behind an option: "chains,pooling", "0.15".
std::string option_text(const Json& value) {
  if (value.is_array()) {
    std::vector<std::string> items;
    for (const Json& item : value) items.push_back(option_text(item));
    return fmt::format("{}", fmt::join(items, ","));
  }
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_float() ? fmt::format("{}", value.get<double>()) : value.dump();
}

}  // namespace

void add_tasks_synthesize(CLI::App& tasks, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(tasks, context, "synthesize",
                                  "Makes tasks from a grammar of operators, with programs for them",
                                  "warpsmith tasks synthesize --count 1000 --heldout 50 --into synthesised",
                                  [options, &context] { return synthesize_tasks(*options, context); });
  command->add_option("--into", options->into, "A new folder")->required();
  for (const workflow::SettingKey& key : workflow::synthesize_setting_keys()) {
    // As a workflow says it, with a list's brackets left out.
    const auto set = [options, name = key.name, is_list = key.standard.is_array()](const std::string& text) {
      try {
        workflow::set_at_key(options->settings, name, is_list ? "[" + text + "]" : text);
      } catch (const Error& error) {
        throw CLI::ValidationError("--" + replaced(name, "_", "-"), error.what());
      }
    };
    const Json& standard = key.standard;
    command
        ->add_option_function<std::string>("--" + replaced(key.name, "_", "-"), set,
                                           key.meaning.substr(0, key.meaning.size() - 1))
        ->type_name(standard.is_array()          ? "LIST"
                    : standard.is_number_float() ? "NUMBER"
                                                 : "INT")
        ->default_str(option_text(standard));
  }
  command
      ->add_option("--without", options->without,
                   "Folder of tasks: none that equals one of them is made (may be given again)")
      ->allow_extra_args(false);
  command->add_option("--form", options->form, "`task`: a folder of tasks; `kernelbench`: modules")
      ->capture_default_str();
  command->add_flag("!--no-programs", options->programs, "Tasks alone");
  add_json_flag(*command, context);
}

}  // namespace warpsmith::cli
