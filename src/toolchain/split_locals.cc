#include "split_locals.h"

#include <algorithm>
#include <array>

namespace warpsmith::toolchain {

namespace {

// Words that begin no declaration.
constexpr std::array<std::string_view, 17> kNoTypes = {
    "return", "break", "continue", "goto",        "sizeof",     "delete",           "throw",    "new", "this",
    "true",   "false", "else",     "static_cast", "const_cast", "reinterpret_cast", "operator", "case"};

class Finder {
 public:
  explicit Finder(const KernelText& kernel) : k_(kernel) {}

  std::vector<Local> run() {
    parameters();
    block(k_.function.body_open + 1, k_.function.body_close - 1);
    return std::move(locals_);
  }

 private:
  void parameters() {
    std::size_t name = 0;
    for (std::size_t i = k_.function.params_open + 1; i <= k_.function.params_close; ++i) {
      if (k_.text(i) == "," || i == k_.function.params_close) {
        if (name != 0)
          locals_.push_back({std::string(k_.text(name)), name, k_.function.body_close, false, true});
        name = 0;
      } else if (k_.text(i) == "=" || k_.text(i) == "[") {
        while (i + 1 < k_.function.params_close && k_.text(i + 1) != ",") ++i;
      } else if (k_.is_name(i)) {
        name = i;
      }
    }
  }

  void block(std::size_t first, std::size_t last) {
    for (std::size_t i = first; i <= last;) i = statement(i, last) + 1;
  }

  // One statement, in a scope that ends at `scope_last`. Gives its last token.
  std::size_t statement(std::size_t i, std::size_t scope_last) {
    while (i < scope_last && (k_.tokens[i].kind == TokenKind::kDirective || is_label(i))) {
      if (k_.tokens[i].kind != TokenKind::kDirective)
        while (i < scope_last && k_.text(i) != ":") ++i;
      ++i;
    }
    if (k_.tokens[i].kind == TokenKind::kDirective || k_.text(i) == ";") return i;
    const std::size_t end = k_.end_of_statement(i);
    const std::string_view t = k_.text(i);
    if (t == "{") {
      block(i + 1, end - 1);
    } else if (t == "if" || t == "for" || t == "while" || t == "switch") {
      const std::size_t head = k_.text(i + 1) == "constexpr" ? i + 2 : i + 1;
      declaration(head + 1, end, t != "for");
      const std::size_t body = matching(k_.tokens, head) + 1;
      const std::size_t body_end = statement(body, k_.end_of_statement(body));
      if (t == "if" && k_.text(body_end + 1) == "else") statement(body_end + 2, end);
    } else if (t == "do") {
      statement(i + 1, k_.end_of_statement(i + 1));
    } else {
      declaration(i, scope_last, false);
    }
    return end;
  }

  bool is_label(std::size_t i) const {
    return k_.text(i) == "case" || (k_.is_name(i) && k_.text(i + 1) == ":");
  }

  // The names that a declaration at `i` makes, if it is one. `in_condition`: `if (a * b)` is none.
  void declaration(std::size_t i, std::size_t scope_last, bool in_condition) {
    bool has_type = false, is_auto = false;
    for (;; ++i) {
      if (k_.text(i) == "[" && k_.text(i + 1) == "[") {  // an attribute
        i = matching(k_.tokens, i);
        continue;
      }
      if (!k_.is_name(i)) return;
      const std::string_view t = k_.text(i), next = k_.text(i + 1);
      if (std::find(kNoTypes.begin(), kNoTypes.end(), t) != kNoTypes.end()) return;
      if ((t == "alignas" || t == "__align__" || t == "__attribute__") && next == "(") {
        i = matching(k_.tokens, i + 1);
        continue;
      }
      is_auto = is_auto || t == "auto";
      if (next == "::") {
        ++i;
      } else if (next == "<") {
        const std::size_t close = matching_angle(k_.tokens, i + 1);
        if (close >= k_.function.body_close) return;
        i = close;
        if (k_.text(i + 1) == "::") {
          ++i;
          continue;
        }
        has_type = true;
        if (!k_.is_name(i + 1)) break;
      } else if (k_.is_name(i + 1)) {
        has_type = true;
      } else if (next == "*" || next == "&" || next == "&&" || (next == "[" && is_auto)) {
        has_type = true;
        break;
      } else if (next == "(" && (k_.text(i + 2) == "*" || k_.text(i + 2) == "&") && k_.is_name(i + 3) &&
                 (k_.text(i + 4) == ")" || k_.text(i + 4) == "[")) {
        add(i + 3, scope_last, k_.text(i + 2) == "&");  // `float (*p)[4]`
        return;
      } else {
        if (!has_type) return;
        --i;  // it is the name
        break;
      }
    }
    declarators(i + 1, scope_last, in_condition);
  }

  void declarators(std::size_t i, std::size_t scope_last, bool in_condition) {
    for (;;) {
      bool is_reference = false;
      for (;; ++i) {
        const std::string_view t = k_.text(i);
        is_reference = is_reference || t == "&" || t == "&&";
        if (t != "*" && t != "&" && t != "&&" && t != "const" && t != "__restrict__") break;
      }
      if (k_.text(i) == "(" && (k_.text(i + 1) == "*" || k_.text(i + 1) == "&") && k_.is_name(i + 2)) {
        add(i + 2, scope_last, k_.text(i + 1) == "&");
        i = matching(k_.tokens, i) + 1;
      } else if (k_.text(i) == "[") {  // a structured binding
        const std::size_t close = matching(k_.tokens, i);
        for (std::size_t n = i + 1; n < close; ++n)
          if (k_.is_name(n)) add(n, scope_last, is_reference);
        return;
      } else {
        const std::string_view next = k_.text(i + 1);
        if (!k_.is_name(i) || (in_condition && next != "=" && next != "{" && next != ";")) return;
        add(i, scope_last, is_reference);
        ++i;
      }
      while (i < scope_last && k_.text(i) != "," && k_.text(i) != ";" && k_.text(i) != ")") {
        if (k_.text(i) == "(" || k_.text(i) == "[" || k_.text(i) == "{") i = matching(k_.tokens, i);
        ++i;
      }
      if (k_.text(i) != ",") return;
      ++i;
    }
  }

  void add(std::size_t at, std::size_t scope_last, bool is_reference) {
    locals_.push_back({std::string(k_.text(at)), at, scope_last, is_reference, false});
  }

  const KernelText& k_;
  std::vector<Local> locals_;
};

}  // namespace

std::vector<Local> find_locals(const KernelText& kernel) { return Finder(kernel).run(); }

}  // namespace warpsmith::toolchain
