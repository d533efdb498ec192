// The commands and their options as --help shows them, for completions and the man page.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "warpsmith/cli/command.h"

namespace warpsmith::cli {

struct ArgumentRow {
  std::string name;  // "--set", or RUN of a positional one
  std::string text;
  bool has_value = true, is_required = false, repeats = false;
  std::optional<Word> word;
  std::vector<std::string> choices;  // empty: anything
};

struct CommandRow {
  std::string name;                 // "tasks synthesize"; empty: the program itself
  std::string text, footer;         // footer: "Example:\n  …"
  std::vector<std::string> within;  // last words of the names of its own commands
  std::vector<ArgumentRow> options, positionals;
};

// The program first, then each command, and behind it those within it.
std::vector<CommandRow> command_table(CLI::App& app);

}  // namespace warpsmith::cli
