#include "kernel_text.h"

#include <algorithm>

namespace warpsmith::toolchain {

namespace {

bool is_type_word(std::string_view t) {
  return KernelText::is_number_word(t) || t == "auto" || t == "void" || t == "const" || t == "half";
}

// Only `#define NAME number`, or a word that is no variable of the kernel.
void look_at_macro(const KernelText& k, std::string_view name, int depth) {
  if (depth > 8) throw NotSplit{};
  for (const std::size_t m : k.scan.macros.find(name)->second) {
    const std::vector<Token> tokens = tokens_of(k.text(m).substr(1), 1);
    if (tokens.size() != 3) throw NotSplit{};
    if (tokens[2].kind == TokenKind::kNumber) continue;
    if (tokens[2].kind != TokenKind::kIdentifier) throw NotSplit{};
    if (k.scan.macros.contains(tokens[2].text)) {
      look_at_macro(k, tokens[2].text, depth + 1);
      continue;
    }
    for (std::size_t i = k.function.params_open; i < k.function.body_close; ++i)
      if (k.text(i) == tokens[2].text && !is_type_word(tokens[2].text)) throw NotSplit{};
    if (tokens[2].text == "threadIdx" || tokens[2].text == "__shared__" || tokens[2].text == "volatile" ||
        tokens[2].text == "static")
      throw NotSplit{};
  }
}

// An operator that changes what it is given, and does not look like it.
bool is_odd_operator(const KernelText& k, const Function& f) {
  if (f.name != "operator" || f.in_class) return false;
  const std::string_view symbol = k.text(f.name_at + 1);
  std::size_t first = f.params_open + 1;
  if (symbol == "++" || symbol == "--" || (symbol.size() > 1 && symbol.back() == '='))
    while (first < f.params_close && k.text(first) != ",") ++first;
  bool is_const = false;
  for (std::size_t i = first; i < f.params_close; ++i) {
    if (k.text(i) == ",") is_const = false;
    is_const = is_const || k.text(i) == "const";
    if ((k.text(i) == "&" || k.text(i) == "&&") && !is_const) return true;
  }
  return false;
}

// What no form can hold, at token `i`.
void look_at(const KernelText& k, std::size_t i) {
  const std::string_view t = k.text(i);
  if (k.tokens[i].kind == TokenKind::kDirective) {
    if (t.find("unroll") == std::string_view::npos) throw NotSplit{};
    return;
  }
  if (!k.is_name(i)) {
    // Lambdas: `[` that no value stands before.
    const bool is_index = (k.is_name(i - 1) && !is_keyword_of_expression(k.text(i - 1))) ||
                          k.text(i - 1) == "]" || k.text(i - 1) == ")";
    if (t == "[" && !is_index) throw NotSplit{};
    return;
  }
  // What crosses a barrier is known by a reference, which `decltype` would tell from a variable.
  if (t == "goto" || t == "static" || t == "using" || t == "typedef" || t == "struct" || t == "volatile" ||
      t == "decltype" || t == "typeof" || t == "__typeof" || t == "__typeof__")
    throw NotSplit{};
  if (k.scan.macros.contains(t)) {
    look_at_macro(k, t, 0);
    return;
  }
  const bool builtin = t == "__syncthreads" || t == "__syncwarp" || KernelText::is_shuffle(t);
  if (k.waits(i) && !builtin) throw NotSplit{};
}

}  // namespace

void KernelText::refuse() const {
  for (const Function& f : scan.functions) {
    if (is_odd_operator(*this, f)) throw NotSplit{};
    // The end of a scope is not where it was.
    if (f.in_class && text(f.name_at - 1) == "~") throw NotSplit{};
  }
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

bool KernelText::is_number_word(std::string_view t) {
  constexpr std::array<std::string_view, 16> kWords = {
      "int",  "unsigned", "long",    "short",    "char",    "signed",   "float", "double",
      "bool", "size_t",   "int32_t", "uint32_t", "int64_t", "uint64_t", "uint",  "uint8_t"};
  return std::find(kWords.begin(), kWords.end(), t) != kWords.end();
}

bool KernelText::waits(std::size_t i) const {
  return is_name(i) && (name_waits(text(i)) || scan.waits.contains(text(i)));
}

bool KernelText::any_waits(std::size_t first, std::size_t last) const {
  for (std::size_t i = first; i <= last; ++i)
    if (waits(i)) return true;
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
