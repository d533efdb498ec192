// The text of a launch plan's line: pieces that know their column, and how lines are cut into them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace warpsmith::task {

// A part of a source line, without blanks at its ends.
struct Piece {
  std::string_view text;
  int column = 1;  // in the source line, from 1
};

// A mistake in one line: ends the reading of that line only.
struct Mistake {
  std::string message;
  int column = 1;
  std::string hint;
};

// What follows `// plan:` in a line, and its column; nothing where the line is no plan line.
std::optional<Piece> plan_line(std::string_view line);

bool is_letter(char c);  // or _
bool is_digit(char c);
bool is_word(char c);                     // a letter or a digit
bool is_name(std::string_view text);      // [A-Za-z_][A-Za-z0-9_]*
bool is_reserved(std::string_view name);  // functions, conversions and names of the device: no task and no
                                          // plan may take them
std::vector<std::string> dtype_names();

Piece trim_piece(Piece piece);
// Cuts at the commas that stand in no bracket. An empty text gives no pieces.
std::vector<Piece> split_pieces(const Piece& whole);
// What stands before the first `separator` and what behind it. Throws Mistake where there is none.
std::pair<Piece, Piece> cut(const Piece& piece, std::string_view separator);
// name[…]: the part before the bracket, and what stands in it. Throws Mistake.
std::pair<Piece, std::vector<Piece>> bracketed(const Piece& piece);
// Where the parenthesis that `piece` begins with is closed. Throws Mistake.
std::size_t closing(const Piece& piece);
void expect_nothing(const Piece& rest);  // throws Mistake

}  // namespace warpsmith::task
