// What others wrote (a compiler, a candidate, a server, the name of a file) made safe for a terminal.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace warpsmith {

// Shown as `\u001b`: control characters (C0, DEL, C1) other than newline and tab, and the characters that
// turn the direction of text. Shown as `\xff`: bytes that are no UTF-8. "\r\n" becomes a newline. JSON text
// keeps its value: the first form is its own.
std::string terminal_text(std::string_view text);

// Writes `text` so. For programs that keep no log (warpsmith/base/log.h, whose lines are made safe too).
void print_terminal_text(std::FILE* to, std::string_view text);

}  // namespace warpsmith
