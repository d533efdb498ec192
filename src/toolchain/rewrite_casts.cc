#include "rewrite_casts.h"

namespace warpsmith::toolchain {

namespace {

bool is_vector_type(std::string_view name) {
  static const std::set<std::string, std::less<>> names = [] {
    std::set<std::string, std::less<>> all = {"half2", "__half2", "__nv_bfloat162", "nv_bfloat162"};
    for (const char* base :
         {"float", "double", "int", "uint", "short", "ushort", "char", "uchar", "longlong", "ulonglong"})
      for (const char* n : {"2", "4"}) all.insert(std::string(base) + n);
    return all;
  }();
  return names.contains(name);
}

bool names_vector_pointer(const CleanSource& source, std::size_t cast) {
  if (source.token_text(cast + 1) != "<") return false;
  const std::size_t close = matching_angle(source.tokens, cast + 1);
  bool vector = false, pointer = false;
  for (std::size_t i = cast + 2; i < close && i < source.tokens.size(); ++i) {
    vector |= is_vector_type(source.token_text(i));
    pointer |= source.token_text(i) == "*";
  }
  return vector && pointer;
}

}  // namespace

void rewrite_cast(const CleanSource& source, const Scan& scan, std::size_t open, SourceEdits& edits) {
  if (open > 0 && source.is_name(open - 1) && !is_keyword_of_expression(source.token_text(open - 1)))
    return;  // a call, sizeof(…)
  const std::size_t close = matching(source.tokens, open);
  if (close >= source.tokens.size() || close < open + 3) return;
  if (source.token_text(close - 1) != "*" && source.token_text(close - 1) != "__restrict__" &&
      source.token_text(close - 1) != "&")
    return;
  std::string type;
  bool aligned_type = false;
  std::size_t i = open + 1;
  for (; i < close && source.token_text(i) != "*" && source.token_text(i) != "&"; ++i) {
    const std::string_view t = source.token_text(i);
    if (t == "const" || t == "volatile" || t == "struct") continue;
    const bool in_list = source.is_name(i) || source.tokens[i].kind == TokenKind::kNumber || t == "<" ||
                         t == ">" || t == "," || t == "::";
    if (!in_list) return;
    aligned_type |= is_vector_type(t) || scan.classes.contains(t);
    type += std::string(t) + " ";
  }
  if (!aligned_type || i + 1 < close - 1) return;
  const std::string_view next = source.token_text(close + 1);
  const bool operand = source.is_name(close + 1) || next == "(" || next == "&" || next == "*";
  if (!operand) return;
  if (source.token_text(i) == "&") {
    // A C-style cast to a reference: `(float4&)x`.
    edits.remove(open, close, "*(" + type + "*)(wstw_align<" + type + ">)&");
    return;
  }
  edits.insert_after(close, "(wstw_align<" + type + ">)");
}

void rewrite_named_cast(const CleanSource& source, std::size_t i, SourceEdits& edits) {
  if (source.token_text(i) == "reinterpret_cast" || names_vector_pointer(source, i))
    edits.remove(i, i, "wstw_reinterpret");
}

}  // namespace warpsmith::toolchain
