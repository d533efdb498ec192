// The only place from which the command line prints: all text goes through terminal_text(), so no command can
// forget it. What a compiler, a candidate, a server or a file's name holds never commands the terminal.
#pragma once

#include <fmt/printf.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace warpsmith::cli {

// `text`, whose colours from paint() stay.
void print_text(std::FILE* to, std::string_view text);

// As std::printf; strings may be std::string.
template <typename... Args>
void print(const char* format, const Args&... args) {
  print_text(stdout, fmt::sprintf(format, args...));
}
template <typename... Args>
void print_error(const char* format, const Args&... args) {
  print_text(stderr, fmt::sprintf(format, args...));
}

// For other programs, to stdout: byte for byte, unless it is a terminal.
void print_data(std::string_view data);

// Takes back the last `lines` lines of a terminal, to be printed anew.
void erase_lines(std::FILE* to, int lines);

// ESC[`code`m for print_text(), in a form that only this process can write: text that a candidate wrote is
// never taken for it.
std::string colour_mark(std::string_view code);

}  // namespace warpsmith::cli
