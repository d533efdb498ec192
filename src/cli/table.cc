#include "table.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "warpsmith/base/terminal_text.h"
#include "warpsmith/base/text.h"

namespace warpsmith::cli {

namespace {

constexpr std::size_t kGap = 2;  // blanks between columns

std::size_t width_of(const std::vector<std::size_t>& widths, std::size_t indent) {
  const auto shown = std::count_if(widths.begin(), widths.end(), [](std::size_t w) { return w > 0; });
  return indent + std::accumulate(widths.begin(), widths.end(), std::size_t{0}) +
         kGap * static_cast<std::size_t>(std::max<std::ptrdiff_t>(shown, 1) - 1);
}

}  // namespace

std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

void Table::add(std::vector<Cell> row, std::string below) {
  for (Cell& cell : row)
    cell.text = replaced(terminal_text(cell.text), "\n", " ");  // as wide as it is printed
  rows_.push_back({std::move(row), std::move(below)});
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths(columns_.size());
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    for (const Row& row : rows_)
      if (c < row.cells.size()) widths[c] = std::max(widths[c], characters(row.cells[c].text));
    widths[c] = std::max(widths[c], columns_[c].least);
    if (widths[c] > 0) widths[c] = std::max(widths[c], characters(columns_[c].head));
  }
  return widths;
}

std::string Table::text(const CommandContext& context, std::size_t widest) const {
  std::vector<std::size_t> widths = this->widths();
  while (widest > 0 && width_of(widths, indent_) > widest) {
    std::size_t least_wanted = columns_.size();
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (widths[c] > 0 && columns_[c].spare > 0 &&
          (least_wanted == columns_.size() || columns_[c].spare > columns_[least_wanted].spare))
        least_wanted = c;
    if (least_wanted == columns_.size()) break;
    widths[least_wanted] = 0;
  }
  const auto line = [&](const std::vector<Cell>& cells) {
    std::string out, blanks(indent_, ' ');
    for (std::size_t c = 0; c < std::min(cells.size(), widths.size()); ++c) {
      if (widths[c] == 0) continue;
      const std::string fill(widths[c] - characters(cells[c].text), ' ');
      if (columns_[c].right) blanks += fill;
      if (!cells[c].text.empty()) {
        out += std::exchange(blanks, "");
        out += cells[c].colour.empty() ? cells[c].text : paint(context, cells[c].colour, cells[c].text);
      }
      if (!columns_[c].right) blanks += fill;
      blanks += std::string(kGap, ' ');
    }
    return out + "\n";
  };
  std::string out;
  if (std::any_of(columns_.begin(), columns_.end(), [](const Column& c) { return !c.head.empty(); })) {
    std::vector<Cell> heads;
    for (const Column& column : columns_) heads.emplace_back(column.head, "bold");
    out += line(heads);
  }
  for (const Row& row : rows_) out += line(row.cells) + row.below;
  return out;
}

std::string wrapped(const std::vector<std::string>& words, const std::string& separator, std::size_t indent,
                    std::size_t widest) {
  std::string out, line;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i] + (i + 1 < words.size() ? separator : "");
    if (!line.empty() && indent + characters(line + trim(word)) > widest) {
      out += std::string(indent, ' ') + trim(line) + "\n";
      line.clear();
    }
    line += word;
  }
  return line.empty() ? out : out + std::string(indent, ' ') + trim(line) + "\n";
}

TerminalSize terminal_size(std::FILE* to) {
  winsize size{};
  if (::ioctl(::fileno(to), TIOCGWINSZ, &size) != 0) return {};  // of a terminal alone
  return {size.ws_col, size.ws_row};
}

}  // namespace warpsmith::cli
