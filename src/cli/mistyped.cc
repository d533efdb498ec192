#include "mistyped.h"

#include <CLI/CLI.hpp>

#include "warpsmith/cli/command.h"

namespace warpsmith::cli {

namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string unknown_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known;
  for (const CLI::App* command : commands_of(app)) known.push_back(command->get_name());
  return "there is no command `" + word + "` (" + did_you_mean(word, known, {.before = "", .after = " "}) +
         "`warpsmith --help` lists the commands)";
}

// Commands that have the option, as "`run`, `plan`".
std::string owners(const CLI::App& app, const std::string& option) {
  std::string names;
  for (const CLI::App* command : commands_of(app))
    if (command->get_option_no_throw(option) != nullptr)
      names += (names.empty() ? "`" : ", `") + command->get_name() + "`";
  return names;
}

// "warpsmith tasks synthesize"
std::string path_of(const CLI::App* command) {
  if (command == nullptr || command->get_parent() == nullptr) return "warpsmith";
  return path_of(command->get_parent()) + " " + command->get_name();
}

std::string unknown_option(const CLI::App& app, const CLI::App* command, const std::string& option) {
  const std::string said = "`" + path_of(command) + "` has no option `" + option + "`";
  const std::string help = "`" + path_of(command) + " --help`";
  const bool would_run =
      command != nullptr && (command->get_name() == "run" || command->get_name() == "sweep");
  if (would_run && (option == "-n" || option == "--dry-run" || option == "--dryrun"))
    return said + " (`warpsmith plan` shows what a run would do, and starts nothing)";
  if (const std::string names = owners(app, option); !names.empty())
    return said +
           (command == nullptr ? " in front of the command; it goes behind one of " : "; these have it: ") +
           names;
  std::vector<std::string> known = options_of(app);
  if (command != nullptr)
    for (std::string& name : options_of(*command)) known.push_back(std::move(name));
  const std::string word = option.starts_with("--") ? option : "-" + option;  // -results
  return said + " (" + (word.size() > 3 ? did_you_mean(word, known, {.before = "", .after = " "}) : "") +
         help + " lists them)";
}

}  // namespace

std::string unknown_word(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = nullptr;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") return "";
    if (word.size() > 1 && word.front() == '-') {
      const std::string name = word.substr(0, word.find('='));
      const CLI::Option* option = command == nullptr ? nullptr : command->get_option_no_throw(name);
      if (option == nullptr) option = app.get_option_no_throw(name);
      if (option == nullptr) return unknown_option(app, command, name);
      if (option->get_items_expected_min() > 0 && name == word) ++i;  // its value
    } else {
      const CLI::App* named = nullptr;
      for (const CLI::App* one : commands_of(command == nullptr ? app : *command))
        if (one->get_name() == word) named = one;
      if (named == nullptr && command == nullptr) return unknown_command(app, word);
      if (named != nullptr) command = named;
    }
  }
  return "";
}

}  // namespace warpsmith::cli
