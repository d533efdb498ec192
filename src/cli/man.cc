// warpsmith man: the man page, from the table of commands and options.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "command_table.h"
#include "print.h"
#include "warpsmith/base/characters.h"
#include "warpsmith/base/text.h"

namespace warpsmith::cli {

namespace {

// Text of a line of troff: no character of it is a command, and all are ASCII.
std::string roff(std::string_view text) {
  std::string out = !text.empty() && (text.front() == '.' || text.front() == '\'') ? "\\&" : "";
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character c = utf8_character(text, at);
    if (c.code == '\\')
      out += "\\e";
    else if (c.code == '-')
      out += "\\-";
    else if (c.code >= 0x80)
      out += fmt::format("\\[u{:04X}]", static_cast<std::uint32_t>(c.code));
    else
      out += text[at];
    at += c.bytes;
  }
  return out;
}

std::string synopsis(const CommandRow& command) {
  std::string out = ".B warpsmith" + (command.name.empty() ? "" : " " + roff(command.name)) + "\n";
  if (!command.options.empty()) out += "[\\fIOPTIONS\\fR]\n";
  for (const ArgumentRow& p : command.positionals) {
    const std::string name = "\\fI" + roff(p.name) + "\\fR" + (p.repeats ? "..." : "");
    out += (p.is_required ? name : "[" + name + "]") + "\n";
  }
  return out;
}

std::string paragraph(const ArgumentRow& argument) {
  const bool is_option = argument.name.starts_with("--");
  std::string head = (is_option ? "\\fB" : "\\fI") + roff(argument.name) + "\\fR";
  if (is_option && argument.has_value)
    head += " \\fI" +
            roff(argument.choices.empty() ? "VALUE" : fmt::format("{}", fmt::join(argument.choices, "|"))) +
            "\\fR";
  return ".TP\n" + head + "\n" + roff(argument.text) + "\n";
}

std::string example(const std::string& footer) {
  std::string out;
  for (const std::string& line : split_lines(footer))
    if (line.starts_with("  ")) out += roff(line.substr(2)) + "\n";
  return out.empty() ? "" : ".PP\n.nf\n" + out + ".fi\n";
}

int print_man_page(CLI::App& app) {
  const std::vector<CommandRow> table = command_table(app);
  const CommandRow& program = table.front();
  std::string out = ".TH WARPSMITH 1 \"\" \"Warpsmith " WARPSMITH_VERSION
                    "\" \"User Commands\"\n.SH NAME\nwarpsmith \\- " +
                    roff(program.text) +
                    "\n.SH SYNOPSIS\n.B warpsmith\n[\\fIOPTIONS\\fR]\n\\fICOMMAND\\fR ...\n.SH OPTIONS\n";
  for (const ArgumentRow& option : program.options) out += paragraph(option);
  out += ".SH COMMANDS\n";
  for (const CommandRow& command : table) {
    if (command.name.empty()) continue;
    out += ".SS " + roff(command.name) + "\n" + synopsis(command) + ".PP\n" + roff(command.text) + ".\n";
    for (const auto* arguments : {&command.positionals, &command.options})
      for (const ArgumentRow& argument : *arguments)
        if (argument.name != "--help") out += paragraph(argument);
    out += example(command.footer);
  }
  out += ".SH NOTES\n";
  for (const std::string& line : split_lines(program.footer)) out += roff(line) + "\n";
  print_data(out);
  return kExitOk;
}

}  // namespace

void add_man(CLI::App& app, CommandContext& context) {
  add_command(app, context, "man", "Prints the man page of all commands",
              "warpsmith man > ~/.local/share/man/man1/warpsmith.1", [&app] { return print_man_page(app); });
}

}  // namespace warpsmith::cli
