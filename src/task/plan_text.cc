#include "plan_text.h"

#include <algorithm>
#include <set>

#include "warpsmith/task/task.h"

namespace warpsmith::task {

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

}  // namespace

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_letter(c) || is_digit(c); }
bool is_name(std::string_view text) {
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), is_word);
}

Piece trim_piece(Piece piece) {
  while (!piece.text.empty() && is_blank(piece.text.front())) {
    piece.text.remove_prefix(1);
    ++piece.column;
  }
  while (!piece.text.empty() && is_blank(piece.text.back())) piece.text.remove_suffix(1);
  return piece;
}

std::vector<Piece> split_pieces(const Piece& whole) {
  std::vector<Piece> pieces;
  if (trim_piece(whole).text.empty()) return pieces;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= whole.text.size(); ++i) {
    const char c = i < whole.text.size() ? whole.text[i] : ',';
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (i == whole.text.size() || (c == ',' && depth <= 0)) {
      pieces.push_back(
          trim_piece({whole.text.substr(begin, i - begin), whole.column + static_cast<int>(begin)}));
      begin = i + 1;
    }
  }
  return pieces;
}

bool is_reserved(std::string_view name) {
  static const std::set<std::string_view> kWords = {
      "SMS", "SMEM_MAX", "ON_CPU",  "cdiv",       "min",           "max", "clog2", "sqrt", "inf",
      "nan", "dim3",     "aligned", "contiguous", "blocks_per_sm", "i64", "f16",   "f32",  "f64"};
  return kWords.count(name) != 0;
}

std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(Dtype::kBool); ++i)
    names.emplace_back(to_string(static_cast<Dtype>(i)));
  return names;
}

std::pair<Piece, Piece> cut(const Piece& piece, std::string_view separator) {
  const std::size_t at = piece.text.find(separator);
  if (at == std::string_view::npos)
    throw Mistake{"`" + std::string(separator) + "` is missing",
                  piece.column + static_cast<int>(piece.text.size()), ""};
  const std::size_t after = at + separator.size();
  return {trim_piece({piece.text.substr(0, at), piece.column}),
          trim_piece({piece.text.substr(after), piece.column + static_cast<int>(after)})};
}

std::pair<Piece, std::vector<Piece>> bracketed(const Piece& piece) {
  const auto [name, tail] = cut(piece, "[");
  if (tail.text.empty() || tail.text.back() != ']')
    throw Mistake{"`]` is missing", tail.column + static_cast<int>(tail.text.size()), ""};
  return {name, split_pieces({tail.text.substr(0, tail.text.size() - 1), tail.column})};
}

std::size_t closing(const Piece& piece) {
  int depth = 0;
  for (std::size_t i = 0; i < piece.text.size(); ++i) {
    if (piece.text[i] == '(') ++depth;
    if (piece.text[i] == ')' && --depth == 0) return i;
  }
  throw Mistake{"`)` is missing", piece.column + static_cast<int>(piece.text.size()), ""};
}

void expect_nothing(const Piece& rest) {
  if (!rest.text.empty()) throw Mistake{"unexpected `" + std::string(rest.text) + "`", rest.column, ""};
}

std::optional<Piece> plan_line(std::string_view line) {
  const std::string_view whole = line;
  const auto skip_blanks = [&] {
    while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
  };
  skip_blanks();
  if (!line.starts_with("//")) return std::nullopt;
  line.remove_prefix(2);
  skip_blanks();
  if (!line.starts_with("plan:")) return std::nullopt;
  line.remove_prefix(5);
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return Piece{line, static_cast<int>(line.data() - whole.data()) + 1};
}

}  // namespace warpsmith::task
