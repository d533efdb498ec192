// Aligned columns for people: the one way in which commands print a table.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "warpsmith/cli/command.h"

namespace warpsmith::cli {

class Table {
 public:
  struct Column {
    std::string head;
    bool right = false;     // numbers
    std::size_t least = 0;  // characters that it has at least
    int spare = 0;          // left out where the table is too wide, the highest first; 0: never
  };
  struct Cell {
    Cell(std::string cell_text = "", std::string cell_colour = "")
        : text(std::move(cell_text)), colour(std::move(cell_colour)) {}
    Cell(const char* cell_text) : text(cell_text) {}
    std::string text, colour;  // of paint(); empty: none
  };
  explicit Table(std::vector<Column> columns, std::size_t indent = 0)
      : columns_(std::move(columns)), indent_(indent) {}

  // A shorter row ends early. `below`: whole lines, which stand under it as they are.
  void add(std::vector<Cell> row, std::string below = "");

  // With a line of heads where any column has one. A column in which no row has text is left out, unless it
  // has a least width. `widest`: characters of a line; 0: no limit. Nothing is cut.
  std::string text(const CommandContext& context, std::size_t widest = 0) const;

 private:
  std::vector<std::size_t> widths() const;  // 0: left out

  std::vector<Column> columns_;
  std::size_t indent_;
  struct Row {
    std::vector<Cell> cells;
    std::string below;
  };
  std::vector<Row> rows_;
};

// Places that UTF-8 text takes.
std::size_t characters(const std::string& text);

// `words` with `separator` (such as ", ") between them, on lines of at most `widest` characters that begin
// with `indent` blanks. A longer word has a line of its own.
std::string wrapped(const std::vector<std::string>& words, const std::string& separator, std::size_t indent,
                    std::size_t widest);

// Of the terminal that `to` is printed on; 0: it is none, or does not say.
struct TerminalSize {
  std::size_t columns = 0, rows = 0;
};
TerminalSize terminal_size(std::FILE* to);

}  // namespace warpsmith::cli
