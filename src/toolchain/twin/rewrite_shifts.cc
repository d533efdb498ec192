#include "rewrite_shifts.h"

#include <cstdlib>
#include <vector>

namespace warpsmith::toolchain {

namespace {

// The name that `template <…>` at `i` declares: the last one in front of its parameters, value or body.
std::string_view declared_template(const CleanSource& source, std::size_t i) {
  std::size_t k = matching_angle(source.tokens, i + 1) + 1;
  std::string_view name;
  for (; k < source.tokens.size(); ++k) {
    const std::string_view t = source.token_text(k);
    if (is_one_of(t, {"(", "=", ";", "{", ":", "["})) break;
    if (t == "<") {  // of a specialisation, or of a type
      const std::size_t close = matching_angle(source.tokens, k);
      if (close < source.tokens.size()) k = close;
    } else if (source.is_name(k)) {
      name = t;
    }
  }
  return name;
}

// `<` at `i` opens template arguments.
bool opens_arguments(const CleanSource& source, const std::set<std::string, std::less<>>& templates,
                     std::size_t i) {
  if (i == 0) return false;
  const std::string_view before = source.token_text(i - 1);
  if (before == "template" || before == "]" || before.ends_with("_cast"))
    return before != "]" || source.is_name(i + 1);
  return source.is_name(i - 1) &&
         (templates.contains(before) || (i > 1 && source.token_text(i - 2) == "template"));
}

// Of each `>>`, whether it is a shift and no end of template arguments.
class Angles {
 public:
  Angles(const CleanSource& source, const std::set<std::string, std::less<>>& templates)
      : source_(source), templates_(templates) {}

  // To be called for all tokens in order.
  bool is_shift(std::size_t i) {
    const std::string_view t = source_.token_text(i);
    if (t == "<<") return true;
    if (is_one_of(t, {"(", "[", "{"}) || (t == "<" && opens_arguments(source_, templates_, i))) {
      open_.push_back(t[0]);
    } else if (is_one_of(t, {")", "]", "}", ";"})) {
      while (!open_.empty() && open_.back() == '<') open_.pop_back();
      if (!open_.empty() && t != ";") open_.pop_back();
    } else if (!t.empty() && t.find_first_not_of('>') == std::string_view::npos) {
      const bool closes = !open_.empty() && open_.back() == '<';
      for (std::size_t n = 0; n < t.size() && !open_.empty() && open_.back() == '<'; ++n) open_.pop_back();
      return t == ">>" && !closes;
    }
    return false;
  }

 private:
  const CleanSource& source_;
  const std::set<std::string, std::less<>>& templates_;
  std::string open_;
};

// A number below 32 that is the whole right side of the operator in front of it.
bool is_small_number(const CleanSource& source, std::size_t i) {
  if (i >= source.tokens.size() || source.tokens[i].kind != TokenKind::kNumber) return false;
  const std::string text(source.token_text(i));
  char* end = nullptr;
  const unsigned long value = std::strtoul(text.c_str(), &end, 0);
  return std::string_view(end).find_first_not_of("uUlL") == std::string_view::npos && value < 32 &&
         !is_one_of(source.token_text(i + 1), {"+", "-", "*", "/", "%", "?"});
}

}  // namespace

std::set<std::string, std::less<>> template_names(const CleanSource& source) {
  std::set<std::string, std::less<>> names = {"tiled_partition", "thread_block_tile", "plus",    "less",
                                              "greater",         "bit_and",           "bit_or",  "bit_xor",
                                              "reduce",          "integral_constant", "is_same", "shfl"};
  for (std::size_t i = 0; i < source.tokens.size(); ++i)
    if (source.token_text(i) == "template" && source.token_text(i + 1) == "<")
      names.emplace(declared_template(source, i));
  return names;
}

void rewrite_shifts(const CleanSource& source, const std::set<std::string, std::less<>>& templates,
                    SourceEdits& edits) {
  Angles angles(source, templates);
  for (std::size_t i = 0; i < source.tokens.size(); ++i) {
    const std::string_view t = source.token_text(i);
    const bool shift = angles.is_shift(i) || t == "<<=" || t == ">>=";
    if (!shift || (i > 0 && source.token_text(i - 1) == "operator") || is_small_number(source, i + 1))
      continue;
    edits.insert_at_offset(source.tokens[i].offset + t.size(),
                           (t[0] == '<' ? " wstw_shl " : " wstw_shr ") + std::string(t));
  }
}

}  // namespace warpsmith::toolchain
