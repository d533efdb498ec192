#include "print.h"

#include <unistd.h>

#include <random>

#include "warpsmith/base/terminal_text.h"

namespace warpsmith::cli {

namespace {

// Stands before each colour on its way to print_text(). Its number differs from process to process.
const std::string& mark() {
  static const std::string text = [] {
    std::random_device device;
    return fmt::sprintf("\x1b<%08x%08x>", device(), device());
  }();
  return text;
}

}  // namespace

std::string colour_mark(std::string_view code) { return mark() + std::string(code) + "m"; }

void print_text(std::FILE* to, std::string_view text) {
  std::string out;
  for (;;) {
    const std::size_t colour = text.find(mark());
    out += terminal_text(text.substr(0, colour));
    if (colour == std::string_view::npos) break;
    out += "\x1b[";
    text.remove_prefix(colour + mark().size());
    const std::size_t length = text.find('m') + 1;
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
  std::fwrite(out.data(), 1, out.size(), to);
}

void print_data(std::string_view data) {
  if (::isatty(STDOUT_FILENO) != 0)
    print_text(stdout, data);
  else
    std::fwrite(data.data(), 1, data.size(), stdout);
}

void erase_lines(std::FILE* to, int lines) {
  if (lines > 0) std::fprintf(to, "\x1b[%dA\x1b[J", lines);
}

}  // namespace warpsmith::cli
