#include "rewrite_casts.h"

namespace warpsmith::toolchain {

namespace {

bool qualifies(std::string_view t) {
  return is_one_of(t, {"const", "volatile", "__restrict__", "__restrict", "restrict"});
}

// The last token of [begin, end) that is no qualifier: `*` of `const float4* __restrict__`.
std::size_t last_of_type(const CleanSource& source, std::size_t begin, std::size_t end) {
  while (end > begin + 1 && qualifies(source.token_text(end - 1))) --end;
  return end - 1;
}

std::string text_of(const CleanSource& source, std::size_t begin, std::size_t end) {
  std::string text;
  for (std::size_t i = begin; i < end; ++i)
    text += (i > begin ? " " : "") + std::string(source.token_text(i));
  return text;
}

bool has_pointer(const CleanSource& source, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i)
    if (source.token_text(i) == "*") return true;
  return false;
}

// Whether the operand of a cast can begin here.
bool begins_operand(const CleanSource& source, std::size_t i) {
  const std::string_view t = source.token_text(i);
  if (source.is_name(i)) return !qualifies(t) && !is_one_of(t, {"noexcept", "override", "mutable"});
  return is_one_of(t, {"(", "&", "*", "++", "--"}) ||
         (i < source.tokens.size() && source.tokens[i].kind == TokenKind::kNumber);
}

// `T (*)[4]` in [begin, end).
bool is_pointer_to_array(const CleanSource& source, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin + 1; i + 3 < end; ++i)
    if (source.token_text(i) == "(" && source.token_text(i + 1) == "*" && source.token_text(i + 2) == ")")
      return source.token_text(i + 3) == "[";
  return false;
}

bool is_pointer_type(const CleanSource& source, const CastNames& names, std::size_t begin, std::size_t end) {
  const std::size_t last = last_of_type(source, begin, end);
  if (source.token_text(last) == "*") return last > begin;
  if (is_pointer_to_array(source, begin, end)) return true;
  // `(P)`, and `(const P)` and `(N::P)`.
  return source.is_name(last) && names.pointers.contains(source.token_text(last));
}

// Of an operand that is no pointer, or of a type that turns out to be none, the rewritten cast is the same.
bool may_be_pointer_type(const CleanSource& source, const CastNames& names, std::size_t begin,
                         std::size_t end) {
  const std::size_t last = last_of_type(source, begin, end);
  return is_pointer_type(source, names, begin, end) ||
         (source.is_name(last) && names.types.contains(source.token_text(last))) ||
         (source.token_text(begin) == "decltype" && matching(source.tokens, begin + 1) + 1 == end);
}

}  // namespace

CastNames find_cast_names(const CleanSource& source) {
  CastNames names;
  const auto text = [&](std::size_t k) { return source.token_text(k); };
  const auto end_of = [&](std::size_t k) {
    while (k < source.tokens.size() && text(k) != ";") ++k;
    return k;
  };
  for (std::size_t i = 0; i < source.tokens.size(); ++i) {
    const std::string_view t = text(i);
    if (source.tokens[i].kind == TokenKind::kDirective) {
      CleanSource inside;
      inside.text = std::string(t.substr(1)) + "\n";
      inside.tokens = tokens_of(inside.text, 1);
      const std::size_t count = inside.tokens.size();
      if (count > 3 && inside.token_text(0) == "define" && inside.token_text(2) != "(" &&
          inside.token_text(last_of_type(inside, 2, count)) == "*")
        names.pointers.emplace(inside.token_text(1));
    } else if (t == "using" && source.is_name(i + 1) && text(i + 2) == "=") {
      names.types.emplace(text(i + 1));
      if (has_pointer(source, i + 3, end_of(i + 3))) names.pointers.emplace(text(i + 1));
    } else if (t == "typedef" && source.is_name(end_of(i) - 1)) {
      const std::size_t end = end_of(i);
      names.types.emplace(text(end - 1));
      if (has_pointer(source, i + 1, end)) names.pointers.emplace(text(end - 1));
    } else if ((t == "typename" || t == "class") && source.is_name(i + 1) && i > 0 &&
               (text(i - 1) == "<" || text(i - 1) == ",") && is_one_of(text(i + 2), {",", ">", "="})) {
      names.types.emplace(text(i + 1));
    }
  }
  return names;
}

void rewrite_cast(const CleanSource& source, const CastNames& names, std::size_t open, SourceEdits& edits) {
  if (open > 0 && source.is_name(open - 1) && !is_keyword_of_expression(source.token_text(open - 1)))
    return;  // a call, sizeof(…)
  const std::size_t close = matching(source.tokens, open);
  if (close >= source.tokens.size() || close < open + 2 || !begins_operand(source, close + 1)) return;
  const std::size_t last = last_of_type(source, open + 1, close);
  if (source.token_text(last) == "&" && last > open + 1) {
    // `(float4&)x`
    const std::string type = text_of(source, open + 1, last);
    edits.remove(open, close, "*(" + type + "*)(wstw_pointer<" + type + ">)&");
    return;
  }
  if (may_be_pointer_type(source, names, open + 1, close))
    edits.insert_after(close, "(wstw_cast<" + text_of(source, open + 1, last + 1) + ">)");
}

void rewrite_named_cast(const CleanSource& source, const CastNames& names, std::size_t i,
                        SourceEdits& edits) {
  const std::string_view word = source.token_text(i);
  if (word == "reinterpret_cast") {
    edits.remove(i, i, "wstw_reinterpret");
  } else if (word == "static_cast") {
    const std::size_t close = matching_angle(source.tokens, i + 1);
    if (source.token_text(i + 1) == "<" && close < source.tokens.size() && close > i + 2 &&
        is_pointer_type(source, names, i + 2, close))
      edits.remove(i, i, "wstw_static");
  } else if (source.token_text(i + 1) == "(" && source.token_text(i + 2) != ")" &&
             source.token_text(i + 2) != "*") {
    const std::size_t close = matching(source.tokens, i + 1);
    if (close >= source.tokens.size()) return;
    edits.insert_after(i + 1, "(wstw_cast<" + std::string(word) + ">)(");
    edits.insert_before(close, ")");
  }
}

}  // namespace warpsmith::toolchain
