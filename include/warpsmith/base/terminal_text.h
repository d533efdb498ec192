// What others wrote (a compiler, a candidate, a server, the name of a file) made safe for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace warpsmith {

// Shown as `\u001b`: control characters (C0, DEL, C1) other than newline and tab, and the characters that
// turn the direction of text. Shown as `\xff`: bytes that are no UTF-8. "\r\n" becomes a newline. JSON text
// keeps its value: the first form is its own.
std::string terminal_text(std::string_view text);

}  // namespace warpsmith
