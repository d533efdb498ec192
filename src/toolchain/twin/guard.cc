#include "guard.h"

namespace warpsmith::toolchain {

namespace {

bool is_type_word(std::string_view t) {
  return is_listed(
      "const int unsigned long short char signed float double bool auto size_t uint int32_t uint32_t int64_t "
      "uint64_t constexpr dim3 uint3 half static_cast",
      t);
}

// Does not hold the numbers of all threads: what grows with them begins again in it.
bool is_narrow(std::string_view t) { return t == "char" || t == "short" || t == "bool"; }

class Finder {
 public:
  Finder(const std::vector<Token>& tokens, const Function& kernel) : tokens_(tokens), kernel_(kernel) {}

  std::vector<Guard> run() {
    std::vector<Guard> guards;
    std::size_t i = kernel_.body_open + 1;
    while (i < kernel_.body_close) {
      if (text(i) == "if" && text(i + 1) == "(") {
        Guard g{i + 1, matching(tokens_, i + 1), false};
        if (g.close >= kernel_.body_close) break;
        g.returns = text(g.close + 1) == "return" && text(g.close + 2) == ";";
        if (!g.returns && !is_all_the_rest(g.close + 1)) break;
        if (!is_condition(g)) break;
        guards.push_back(g);
        if (!g.returns) break;
        i = g.close + 3;
        continue;
      }
      const std::size_t end = declaration(i);
      if (end == 0) break;
      i = end + 1;
    }
    return guards;
  }

 private:
  std::string_view text(std::size_t i) const {
    return i < tokens_.size() ? tokens_[i].text : std::string_view();
  }
  bool is_name(std::size_t i) const {
    return i < tokens_.size() && tokens_[i].kind == TokenKind::kIdentifier;
  }

  // threadIdx.x, or a variable made from it. A member of something else (`blockIdx.x`) does not count.
  bool depends_on_x(std::size_t i) const {
    if (!is_name(i) || text(i - 1) == ".") return false;
    if (text(i) == "threadIdx") return !(text(i + 1) == "." && (text(i + 2) == "y" || text(i + 2) == "z"));
    return dependent_.contains(text(i));
  }

  // No calls, no changes to anything: names, numbers, arithmetic, casts to plain types, elements of arrays.
  bool has_no_effects(std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) {
      if (tokens_[i].kind == TokenKind::kNumber) continue;
      if (is_name(i)) {
        if (text(i + 1) == "(" && i + 1 < end) return false;
        continue;
      }
      if (!is_one_of(text(i), {"+", "-", "*", "/", "%", ".", "(", ")", "[", "]", "<", ">", "<=", ">=", "&",
                               "<<", ">>"}))
        return false;
    }
    return true;
  }

  // One mention of something that depends on threadIdx.x, added to and multiplied only: grows or falls evenly
  // with it.
  bool is_even(std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) {
      if (is_name(i)) {
        if (uneven_.contains(text(i))) return false;
        continue;
      }
      if (text(i) == "(" && is_cast_to_other(i)) return false;
      const std::string_view t = text(i);
      if (tokens_[i].kind == TokenKind::kNumber ? t.find('.') != std::string_view::npos
                                                : t != "+" && t != "*" && t != "." && t != "(" && t != ")")
        return false;
    }
    return mentions(begin, end) == 1;
  }

  // `(T)e` of a type that is not known to hold the numbers of all threads.
  bool is_cast_to_other(std::size_t open) const {
    const std::size_t close = matching(tokens_, open);
    if (!is_name(close + 1) && text(close + 1) != "(" && tokens_[close + 1].kind != TokenKind::kNumber)
      return false;
    for (std::size_t i = open + 1; i < close; ++i)
      if (!is_type_word(text(i)) || is_narrow(text(i))) return true;
    return false;
  }

  int mentions(std::size_t begin, std::size_t end) const {
    int n = 0;
    for (std::size_t i = begin; i < end; ++i) n += depends_on_x(i);
    return n;
  }

  // `int i = …, j = …;` of plain types. The place of its `;`, or 0.
  std::size_t declaration(std::size_t begin) {
    if (!is_type_word(text(begin)) || text(begin) == "static_cast") return 0;
    std::size_t i = begin;
    bool narrow = false;
    for (; is_type_word(text(i)) || text(i) == "*" || text(i) == "&" || text(i) == "__restrict__"; ++i)
      narrow = narrow || is_narrow(text(i));
    for (;;) {
      if (!is_name(i)) return 0;
      const std::string name(text(i));
      ++i;
      if (text(i) != "=") return 0;
      const std::size_t start = ++i;
      while (i < kernel_.body_close && text(i) != ";" && text(i) != ",") {
        if (text(i) == "{") return 0;
        if (text(i) == "(" || text(i) == "[") i = matching(tokens_, i);
        ++i;
      }
      if (i >= kernel_.body_close || !has_no_effects(start, i)) return 0;
      if (mentions(start, i) > 0) {
        dependent_.insert(name);
        if (narrow || !is_even(start, i)) uneven_.insert(name);
      } else {
        dependent_.erase(name);
        uneven_.erase(name);
      }
      if (text(i) == ";") return i;
      ++i;
      while (text(i) == "*") ++i;
    }
  }

  // All comparisons must hold: joined by && where the guard lets threads in, by || where it sends them away.
  bool is_condition(const Guard& g) const {
    std::size_t begin = g.open + 1;
    for (std::size_t i = begin; i <= g.close; ++i) {
      if (text(i) == "(") {
        i = matching(tokens_, i);
        continue;
      }
      if (i != g.close && text(i) != "&&" && text(i) != "||") continue;
      if (i != g.close && (text(i) == "||") != g.returns) return false;
      if (!is_comparison(begin, i)) return false;
      begin = i + 1;
    }
    return true;
  }

  bool is_comparison(std::size_t begin, std::size_t end) const {
    std::size_t at = 0;
    for (std::size_t i = begin; i < end; ++i) {
      if (text(i) == "(") {
        i = matching(tokens_, i);
      } else if (text(i) == "<" || text(i) == "<=" || text(i) == ">" || text(i) == ">=") {
        if (at != 0) return false;
        at = i;
      }
    }
    if (at == 0) return false;
    const auto side = [&](std::size_t from, std::size_t to) {
      return from < to && has_no_effects(from, to) && (mentions(from, to) == 0 || is_even(from, to));
    };
    return side(begin, at) && side(at + 1, end) && (mentions(begin, at) == 0 || mentions(at + 1, end) == 0);
  }

  // Whether one statement that begins here is the rest of the body.
  bool is_all_the_rest(std::size_t begin) const {
    if (text(begin) == "{") return matching(tokens_, begin) == kernel_.body_close - 1;
    while (text(begin) == "for" && text(begin + 1) == "(") {
      begin = matching(tokens_, begin + 1) + 1;
      if (text(begin) == "{") return matching(tokens_, begin) == kernel_.body_close - 1;
    }
    const std::string_view first = text(begin);
    if (is_one_of(first, {"if", "while", "do", "switch", "return"})) return false;
    for (std::size_t i = begin; i < kernel_.body_close; ++i) {
      if (text(i) == "(" || text(i) == "[" || text(i) == "{")
        i = matching(tokens_, i);
      else if (text(i) == ";")
        return i == kernel_.body_close - 1;
    }
    return false;
  }

  const std::vector<Token>& tokens_;
  const Function& kernel_;
  std::set<std::string, std::less<>> dependent_,
      uneven_;  // variables made from threadIdx.x, and those that are no even steps
};

// A macro that is one number.
bool is_plain_macro(const Scan& scan, const CleanSource& source, std::string_view name) {
  for (const std::size_t i : scan.macros.find(name)->second) {
    const std::vector<Token> tokens = tokens_of(source.tokens[i].text.substr(1), 1);
    if (tokens.size() != 3 || tokens[2].kind != TokenKind::kNumber) return false;
  }
  return true;
}

}  // namespace

std::vector<Guard> find_guards(const std::vector<Token>& tokens, const Function& kernel) {
  for (std::size_t i = kernel.body_open; i < kernel.body_close; ++i)
    if (tokens[i].kind == TokenKind::kDirective) return {};
  return Finder(tokens, kernel).run();
}

bool is_guarded(const Scan& scan, const CleanSource& source, std::string_view name) {
  const Function* kernel = nullptr;
  for (const Function& f : scan.functions) {
    if (f.name != name || !f.defined()) continue;
    if (kernel != nullptr) return false;  // of overloads and specialisations, the launch takes one
    kernel = &f;
  }
  if (kernel == nullptr || !kernel->is_global || scan.waits.contains(name)) return false;
  for (std::size_t i = kernel->body_open; i < kernel->body_close; ++i)
    if (scan.macros.contains(source.tokens[i].text) && !is_plain_macro(scan, source, source.tokens[i].text))
      return false;
  return !find_guards(source.tokens, *kernel).empty();
}

}  // namespace warpsmith::toolchain
