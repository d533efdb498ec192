#include "command_table.h"

#include <CLI/CLI.hpp>

#include "warpsmith/base/text.h"

namespace warpsmith::cli {

namespace {

// IsMember says "TEXT:{csv,json}" of its option's type.
std::vector<std::string> choices_of(const std::string& type) {
  const std::size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return {};
  return split(std::string_view(type).substr(begin + 1, end - begin - 1), ',');
}

ArgumentRow row_of(CLI::Option& option) {
  ArgumentRow row;
  row.name = option.get_positional() ? option.get_name(true) : "--" + option.get_lnames().front();
  row.text = option.get_description();
  row.has_value = option.get_items_expected_max() > 0;
  row.is_required = option.get_required();
  row.repeats = option.get_items_expected_max() > 1;
  if (row.has_value) row.choices = choices_of(option.get_type_name());
  for (const Word word : {Word::kRun, Word::kWorkflow})
    if (expects(word, option)) row.word = word;
  return row;
}

void add_rows(CLI::App& app, const std::string& name, std::vector<CommandRow>& rows) {
  CommandRow row{.name = name, .text = app.get_description(), .footer = app.get_footer()};
  for (CLI::Option* option : app.get_options([](CLI::Option* one) { return !one->get_group().empty(); }))
    (option->get_positional() ? row.positionals : row.options).push_back(row_of(*option));
  const std::vector<CLI::App*> within = app.get_subcommands([](CLI::App*) { return true; });
  for (const CLI::App* one : within) row.within.push_back(one->get_name());
  rows.push_back(std::move(row));
  for (CLI::App* one : within) add_rows(*one, (name.empty() ? "" : name + " ") + one->get_name(), rows);
}

}  // namespace

std::vector<CommandRow> command_table(CLI::App& app) {
  std::vector<CommandRow> rows;
  add_rows(app, "", rows);
  return rows;
}

}  // namespace warpsmith::cli
