// warpsmith completions SHELL: what a shell completes, from the table of commands and options.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "command_table.h"
#include "print.h"
#include "warpsmith/base/text.h"

namespace warpsmith::cli {

namespace {

std::string joined(const std::vector<std::string>& words, std::string_view between = " ") {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : std::string(between)) + word;
  return out;
}

std::string single_quoted(const std::string& text) { return "'" + replaced(text, "'", "'\\''") + "'"; }

std::vector<std::string> option_names(const CommandRow& command) {
  std::vector<std::string> names;
  for (const ArgumentRow& option : command.options) names.push_back(option.name);
  return names;
}

// What the command `name` within another does.
const std::string& text_of(const std::vector<CommandRow>& table, const CommandRow& within,
                           const std::string& name) {
  const std::string whole = (within.name.empty() ? "" : within.name + " ") + name;
  return std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.name == whole; })->text;
}

// ---- bash

std::string bash_kind(const ArgumentRow& argument) {
  if (!argument.choices.empty()) return "words; words=" + single_quoted(joined(argument.choices));
  if (argument.word == Word::kRun) return "runs";
  return argument.word == Word::kWorkflow ? "workflows" : "files";
}

std::string bash_cases(const std::vector<CommandRow>& table) {
  std::string out = "  case \"$command:$before\" in\n";
  for (const CommandRow& command : table)
    for (const ArgumentRow& option : command.options)
      if (option.has_value && !command.name.empty())
        out += fmt::format("    {}:{}) kind={} ;;\n", single_quoted(command.name), option.name,
                           bash_kind(option));
  out += "    *:--results) kind=files ;;\n    *)\n      case \"$command\" in\n";
  for (const CommandRow& command : table) {
    std::vector<std::string> words = command.within;
    const ArgumentRow* first = command.positionals.empty() ? nullptr : &command.positionals.front();
    if (first != nullptr) words.insert(words.end(), first->choices.begin(), first->choices.end());
    out +=
        fmt::format("        {}) options={} kind={} words={} ;;\n", single_quoted(command.name),
                    single_quoted(joined(option_names(command)) + (command.name.empty() ? "" : " --results")),
                    first == nullptr || !first->choices.empty() ? "words" : bash_kind(*first),
                    single_quoted(joined(words)));
  }
  return out + "      esac ;;\n  esac\n";
}

std::string bash_script(const std::vector<CommandRow>& table) {
  std::string commands;
  for (const CommandRow& command : table)
    if (!command.name.empty()) commands += (commands.empty() ? "" : " | ") + single_quoted(command.name);
  return R"(# Completions of warpsmith for bash:
#   warpsmith completions bash > ~/.local/share/bash-completion/completions/warpsmith
_warpsmith() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local results=${WARPSMITH_RESULTS:-results}
  local command='' options='' kind=files words='' longer i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ ${COMP_WORDS[i]} == --results ]]; then
      results=${COMP_WORDS[++i]}
      continue
    fi
    longer="$command${command:+ }${COMP_WORDS[i]}"
    case "$longer" in
      )" +
         commands + ") command=$longer ;;\n    esac\n  done\n" + bash_cases(table) +
         R"(  if [[ $word == -* ]]; then
    kind=words
    words=$options
  fi
  if [[ $kind == runs ]]; then
    for i in "$results"/*/run.json; do
      [[ -e $i ]] || continue
      i=${i%/run.json}
      words+=" ${i##*/}"
    done
  elif [[ $kind == workflows ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -d -- "$word"; compgen -f -X '!*.yaml' -- "$word")
  fi
  [[ -z $words ]] || mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o bashdefault -o default -F _warpsmith warpsmith
)";
}

// ---- zsh

std::string zsh_action(const ArgumentRow& argument) {
  if (!argument.choices.empty()) return "(" + joined(argument.choices) + ")";
  if (argument.word == Word::kRun) return "_warpsmith_runs";
  return argument.word == Word::kWorkflow ? "_files -g \"*.yaml(-.)\"" : "_files";
}

// The arguments of _arguments.
std::string zsh_arguments(const CommandRow& command) {
  std::string out;
  for (const ArgumentRow& option : command.options) {
    std::string spec = (option.repeats ? "*" : "") + option.name + "[" +
                       replaced(replaced(option.text, "[", "\\["), "]", "\\]") + "]";
    if (option.has_value) spec += ":" + option.name.substr(2) + ":" + zsh_action(option);
    out += " \\\n      " + single_quoted(spec);
  }
  for (const ArgumentRow& positional : command.positionals)
    out += " \\\n      " + single_quoted((positional.repeats       ? "*:"
                                          : positional.is_required ? ":"
                                                                   : "::") +
                                         positional.name + ":" + zsh_action(positional));
  return out;
}

std::string zsh_function(const std::vector<CommandRow>& table, const CommandRow& command) {
  std::string out = "_warpsmith" + replaced(command.name.empty() ? "" : "_" + command.name, " ", "_") +
                    "() {\n  local context state state_descr line\n  typeset -A opt_args\n";
  const std::string here =
      command.name.empty() ? "_warpsmith" : "_warpsmith_" + replaced(command.name, " ", "_");
  if (command.within.empty()) return out + "  _arguments" + zsh_arguments(command) + "\n}\n";
  CommandRow options = command;
  options.positionals.clear();
  out += "  _arguments -C" + zsh_arguments(options) +
         " \\\n      '1: :->first' '*:: :->rest'\n  case $state in\n    first)\n      local -a within\n      "
         "within=(";
  for (const std::string& name : command.within)
    out += "\n        " + single_quoted(name + ":" + text_of(table, command, name));
  out += ")\n      _describe command within\n";
  if (!command.positionals.empty()) out += "      " + zsh_action(command.positionals.front()) + "\n";
  out += "      ;;\n    rest)\n      case $words[1] in\n";
  for (const std::string& name : command.within)
    out += fmt::format("        {}) {}_{} ;;\n", name, here, name);
  return out + "      esac ;;\n  esac\n}\n";
}

std::string zsh_script(const std::vector<CommandRow>& table) {
  std::string out =
      "#compdef warpsmith\n# Completions of warpsmith for zsh, in a folder of $fpath:\n"
      "#   warpsmith completions zsh > ~/.zfunc/_warpsmith\n"
      "_warpsmith_runs() {\n  local -a runs\n  runs=(${WARPSMITH_RESULTS:-results}/*/run.json(N:h:t))\n"
      "  compadd -a runs\n  _files -/\n}\n";
  for (auto command = table.rbegin(); command != table.rend(); ++command)
    out += zsh_function(table, *command);
  return out + "_warpsmith \"$@\"\n";
}

// ---- fish

std::string fish_value(const ArgumentRow& argument) {
  if (!argument.choices.empty()) return " -x -a " + single_quoted(joined(argument.choices));
  const std::string value = argument.name.starts_with("--") ? " -r" : "";
  if (argument.word == Word::kRun) return value + " -a '(__warpsmith_runs)'";
  return value;
}

std::string fish_script(const std::vector<CommandRow>& table) {
  std::string out =
      "# Completions of warpsmith for fish:\n"
      "#   warpsmith completions fish > ~/.config/fish/completions/warpsmith.fish\n"
      "function __warpsmith_runs\n  set -l results results\n"
      "  set -q WARPSMITH_RESULTS; and set results $WARPSMITH_RESULTS\n"
      "  for file in $results/*/run.json\n    string replace -r '.*/([^/]+)/run.json$' '$1' $file\n"
      "  end\nend\n";
  const auto quoted = [](const std::string& text) {
    return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
  };
  for (const CommandRow& command : table) {
    const std::string last = command.name.substr(command.name.rfind(' ') + 1);
    const std::string here = command.name.empty() ? "" : "-n '__fish_seen_subcommand_from " + last + "' ";
    for (const std::string& name : command.within) {
      out += fmt::format("complete -c warpsmith {}-a {} -d {}\n",
                         command.name.empty() ? "-f -n __fish_use_subcommand " : here, name,
                         quoted(text_of(table, command, name)));
    }
    for (const ArgumentRow& option : command.options)
      out += fmt::format("complete -c warpsmith {}-l {}{} -d {}\n", here, option.name.substr(2),
                         option.has_value ? fish_value(option) : "", quoted(option.text));
    for (const ArgumentRow& positional : command.positionals)
      if (const std::string words = fish_value(positional); !words.empty())
        out += fmt::format("complete -c warpsmith {}{} -d {}\n", here, words, quoted(positional.name));
  }
  return out;
}

int print_completions(CLI::App& app, const std::string& shell) {
  const std::vector<CommandRow> table = command_table(app);
  print_data(shell == "bash" ? bash_script(table) : shell == "zsh" ? zsh_script(table) : fish_script(table));
  return kExitOk;
}

}  // namespace

void add_completions(CLI::App& app, CommandContext& context) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command =
      add_command(app, context, "completions", "Prints completions of commands, options, runs and workflows",
                  "warpsmith completions bash > ~/.local/share/bash-completion/completions/warpsmith",
                  [shell, &app] { return print_completions(app, *shell); });
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

}  // namespace warpsmith::cli
