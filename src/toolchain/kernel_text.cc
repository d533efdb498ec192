#include "kernel_text.h"

#include <algorithm>

namespace warpsmith::toolchain {

namespace {

// What no form can hold, at token `i`.
void look_at(const KernelText& k, std::size_t i) {
  const std::string_view t = k.text(i);
  if (k.tokens[i].kind == TokenKind::kDirective) {
    if (t.find("unroll") == std::string_view::npos) throw NotSplit{};
    return;
  }
  if (!k.is_name(i)) {
    // Lambdas: `[` that no value stands before.
    if (t == "[" && !(k.is_name(i - 1) || k.text(i - 1) == "]" || k.text(i - 1) == ")")) throw NotSplit{};
    return;
  }
  if (t == "goto" || t == "static" || t == "using" || t == "typedef" || t == "struct" || t == "volatile")
    throw NotSplit{};
  if (k.scan.macros.contains(t)) {
    for (const std::size_t m : k.scan.macros.find(t)->second)
      if (tokens_of(k.text(m).substr(1), 1).size() != 3) throw NotSplit{};  // only `#define NAME number`
    return;
  }
  const bool builtin = t == "__syncthreads" || t == "__syncwarp" || KernelText::is_shuffle(t);
  if (k.waits(i) && !builtin) throw NotSplit{};
}

}  // namespace

void KernelText::refuse() const {
  for (std::size_t i = function.body_open; i < function.body_close; ++i) look_at(*this, i);
}

std::string KernelText::words(std::size_t first, std::size_t last) const {
  std::string out;
  for (std::size_t i = first; i <= last; ++i) out += (out.empty() ? "" : " ") + std::string(text(i));
  return out;
}

bool KernelText::is_shuffle(std::string_view name) {
  return std::find(kShuffleNames.begin(), kShuffleNames.end(), name) != kShuffleNames.end();
}

bool KernelText::waits(std::size_t i) const {
  return is_name(i) && (name_waits(text(i)) || scan.waits.contains(text(i)));
}

bool KernelText::any_waits(std::size_t first, std::size_t last) const {
  for (std::size_t i = first; i <= last; ++i)
    if (waits(i)) return true;
  return false;
}

bool KernelText::is_changed(std::string_view name, std::size_t first, std::size_t last) const {
  for (std::size_t i = first; i <= last; ++i) {
    if (text(i) != name || text(i - 1) == "." || text(i - 1) == "->") continue;
    const std::string_view next = text(i + 1), before = text(i - 1);
    if (next == "=" || next == "++" || next == "--" ||
        (next.size() >= 2 && next.back() == '=' && next != "==" && next != "<=" && next != ">=" &&
         next != "!="))
      return true;
    if (before == "++" || before == "--" ||
        (before == "&" && !is_name(i - 2) && text(i - 2) != ")" && text(i - 2) != "]" &&
         tokens[i - 2].kind != TokenKind::kNumber))
      return true;
  }
  return false;
}

std::size_t KernelText::end_of_statement(std::size_t i) const {
  while (tokens[i].kind == TokenKind::kDirective) ++i;
  const std::string_view t = text(i);
  if (t == "{") return matching(tokens, i);
  if (t == "if" || t == "for" || t == "while" || t == "switch") {
    const std::size_t head = text(i + 1) == "constexpr" ? i + 2 : i + 1;
    if (text(head) != "(") throw NotSplit{};
    std::size_t end = end_of_statement(matching(tokens, head) + 1);
    if (t == "if" && text(end + 1) == "else") end = end_of_statement(end + 2);
    return end;
  }
  if (t == "do") {
    const std::size_t body = end_of_statement(i + 1);
    return matching(tokens, body + 2) + 1;
  }
  for (; i < function.body_close; ++i) {
    if (text(i) == "(" || text(i) == "[" || text(i) == "{")
      i = matching(tokens, i);
    else if (text(i) == ";")
      return i;
  }
  throw NotSplit{};
}

}  // namespace warpsmith::toolchain
