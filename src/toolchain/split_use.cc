#include "split_use.h"

#include <algorithm>

namespace warpsmith::toolchain {

namespace {

bool is_assignment(std::string_view t) {
  return t == "=" || (t.size() >= 2 && t.back() == '=' && t != "==" && t != "<=" && t != ">=" && t != "!=");
}

bool starts_head(std::string_view t) {
  return t == "if" || t == "for" || t == "while" || t == "switch" || t == "constexpr" || t == "sizeof" ||
         t == "alignof";
}

class UseReader {
 public:
  UseReader(const KernelText& kernel, std::size_t at) : k_(kernel), first_(at), last_(at) {}

  Use run(std::size_t dimensions) {
    for (std::size_t d = 0; d < dimensions; ++d) {
      // An array without all its indices is a pointer to itself.
      if (k_.text(last_ + 1) != "[")
        return k_.text(first_ - 1) == "(" && k_.text(first_ - 2) == "sizeof" ? Use::kRead : Use::kBound;
      last_ = matching(k_.tokens, last_ + 1);
    }
    // The expression grows as long as it stands for the variable.
    for (;;) {
      if (const Use* use = members()) return *use;
      const std::string_view before = k_.text(first_ - 1), next = k_.text(last_ + 1);
      if (next == "++" || next == "--" || before == "++" || before == "--" || is_assignment(next))
        return Use::kChanged;
      if (before == "&" && is_unary(first_ - 1)) return Use::kBound;
      if (before == ")" && is_cast_to_reference(first_ - 1)) return Use::kBound;
      if (before == "(" && next == ")") {
        if (is_list_of_call(first_ - 1)) return argument(first_ - 1);
        if (is_head(first_ - 1)) return Use::kRead;
        --first_, ++last_;
      } else if (before == "?" && next == ":") {
        whole_of_condition();
      } else if (before == ":" && (next == ")" || next == "," || next == ";" || next == "]" || next == "}")) {
        if (!whole_of_condition()) return Use::kBound;  // `for (auto& e : v)`
      } else if ((before == "{" || before == "," || before == "(") &&
                 (next == "," || next == ")" || next == "}")) {
        const std::size_t open = opening(first_ - 1);
        if (k_.text(open) == "{") return element(open);
        if (k_.text(open) != "(") return Use::kRead;
        if (is_list_of_call(open)) return argument(open);
        if (next != ")" || is_head(open)) return Use::kRead;
        first_ = open;  // `(a, v)` is v
        last_ = matching(k_.tokens, open);
      } else if (before == "=") {
        return initial_value(first_ - 1);
      } else {
        return Use::kRead;
      }
    }
  }

 private:
  static constexpr Use kRead = Use::kRead, kLent = Use::kLent, kBound = Use::kBound;

  // Takes in `.x` and indices of members that are arrays. A use where that tells all.
  const Use* members() {
    for (;;) {
      const std::string_view next = k_.text(last_ + 1);
      if (next == "[" || next == "->") return any_operator(next) ? &kBound : &kRead;
      if (next == "(") return k_.is_name(last_) || k_.text(last_) == ")" ? call_of_object() : &kRead;
      if (next != ".") return nullptr;
      last_ += 2;
      if (k_.text(last_ + 1) == "(") return call_of_method(k_.text(last_));
      const std::size_t dimensions = member_dimensions(k_.text(last_));
      for (std::size_t d = 0; d < dimensions; ++d) {
        if (k_.text(last_ + 1) != "[") return &kBound;
        last_ = matching(k_.tokens, last_ + 1);
      }
    }
  }

  bool any_operator(std::string_view symbol) const {
    return std::any_of(k_.scan.functions.begin(), k_.scan.functions.end(), [&](const Function& f) {
      return f.name == "operator" && k_.text(f.name_at + 1) == symbol;
    });
  }

  const Use* call_of_object() const { return any_operator("(") ? &kBound : &kRead; }

  // A method without `const` may change its object; one with it may give its address away.
  const Use* call_of_method(std::string_view name) const {
    bool found = false;
    for (const Function& f : k_.scan.functions) {
      if (!f.in_class || f.name != name) continue;
      found = true;
      if (k_.text(f.params_close + 1) != "const") return &kBound;
    }
    return found ? &kLent : &kBound;
  }

  // The most dimensions that any variable of that name is declared with outside of the kernel.
  std::size_t member_dimensions(std::string_view name) const {
    std::size_t most = 0;
    for (std::size_t i = 1; i < k_.tokens.size(); ++i) {
      if (i == k_.function.body_open) i = k_.function.body_close;
      if (k_.text(i) != name || k_.text(i + 1) != "[" ||
          !(k_.is_name(i - 1) || k_.text(i - 1) == ">" || k_.text(i - 1) == "*" || k_.text(i - 1) == ","))
        continue;
      std::size_t dimensions = 0;
      for (std::size_t open = i + 1; k_.text(open) == "["; open = matching(k_.tokens, open) + 1) ++dimensions;
      most = std::max(most, dimensions);
    }
    return most;
  }

  std::size_t opening_of(std::size_t close) const {
    int depth = 0;
    for (std::size_t i = close; i > k_.function.head; --i) {
      const std::string_view t = k_.text(i);
      if (t == ")" || t == "]" || t == "}") ++depth;
      if ((t == "(" || t == "[" || t == "{") && --depth == 0) return i;
    }
    throw NotSplit{};
  }

  // The bracket that is open at `i`; one of a `;` where a statement begins.
  std::size_t opening(std::size_t i) const {
    for (; i > k_.function.head; --i) {
      const std::string_view t = k_.text(i);
      if (t == "(" || t == "[" || t == "{" || t == ";") return i;
      if (t == ")" || t == "]" || t == "}") i = opening_of(i);
    }
    throw NotSplit{};
  }

  // `(T*)`, `(float4&)`, `(T)`: words, then stars.
  bool looks_like_type(std::size_t open, std::size_t close) const {
    std::size_t i = open + 1;
    while (i < close && (k_.is_name(i) || k_.text(i) == "::" || k_.text(i) == "<" || k_.text(i) == ">" ||
                         k_.text(i) == ","))
      ++i;
    if (i == open + 1) return false;
    while (i < close &&
           (k_.text(i) == "*" || k_.text(i) == "&" || k_.text(i) == "&&" || k_.text(i) == "const"))
      ++i;
    return i == close;
  }

  bool is_unary(std::size_t i) const {
    const std::string_view before = k_.text(i - 1);
    if (k_.is_name(i - 1)) return is_keyword_of_expression(before);
    if (k_.tokens[i - 1].kind == TokenKind::kNumber || before == "]") return false;
    if (before != ")") return true;
    const std::size_t open = opening_of(i - 1);
    if (k_.is_name(open - 1) && !is_keyword_of_expression(k_.text(open - 1)))
      return is_head(open) && k_.text(open - 1) != "sizeof";
    return looks_like_type(open, i - 1);
  }

  bool is_cast_to_reference(std::size_t close) const {
    return k_.text(close - 1) == "&" || k_.text(close - 1) == "&&";
  }

  // Whether the `(` is that of an `if` and the like.
  bool is_head(std::size_t open) const { return starts_head(k_.text(open - 1)); }

  // The `<` of the list that ends before `i`, or 0.
  std::size_t angle_before(std::size_t i) const {
    if (k_.text(i) != ">" && k_.text(i) != ">>") return 0;
    for (std::size_t k = i - 1; k > k_.function.head; --k) {
      const std::string_view t = k_.text(k);
      if (t == ";" || t == "{" || t == "}") return 0;
      if (t == "<" && k_.is_name(k - 1) && matching_angle(k_.tokens, k) == i) return k;
    }
    return 0;
  }

  // Whether the `(` holds arguments, and not a part of an expression.
  bool is_list_of_call(std::size_t open) const {
    const std::string_view before = k_.text(open - 1);
    if (k_.is_name(open - 1)) return !starts_head(before) && !is_keyword_of_expression(before);
    if (before == "]" || before == "}" || angle_before(open - 1) != 0) return true;
    if (before != ")") return false;
    const std::size_t other = opening_of(open - 1);
    return !is_head(other) && !is_keyword_of_expression(k_.text(other - 1));  // not `if (…) (v) = 1;`
  }

  // A call that gets the expression as an argument: which, and what it may do with it.
  Use argument(std::size_t open) const {
    std::size_t callee = open - 1;
    if (const std::size_t angle = angle_before(callee); angle != 0) {
      for (std::size_t i = angle; i < callee; ++i)
        if (k_.text(i) == "&" || k_.text(i) == "&&") return kBound;
      callee = angle - 1;
    }
    if (k_.text(callee) == ")") {
      const std::size_t other = opening_of(callee);
      if (!looks_like_type(other, callee) || is_list_of_call(other)) return kBound;
      return is_cast_to_reference(callee) ? kBound : of_functions(k_.text(callee - 1), open);
    }
    if (!k_.is_name(callee)) return kBound;
    // `float& r(v)`, `Sum s(v)`
    const std::string_view before = k_.text(callee - 1);
    if (before == "&" || before == "&&") return kBound;
    if (k_.is_name(callee - 1) && !is_keyword_of_expression(before)) return of_functions(before, open);
    return of_functions(k_.text(callee), open);
  }

  Use of_functions(std::string_view name, std::size_t open) const {
    const std::size_t place = place_in_list(open + 1, first_);
    Use most = kRead;
    bool found = false;
    for (const Function& f : k_.scan.functions) {
      if (f.name != name) continue;
      found = true;
      most = std::max(most, of_parameter(f, place));
    }
    if (found || k_.scan.classes.contains(name)) return most;
    // A functor, or something that holds a function.
    for (const Function& f : k_.scan.functions)
      if (f.name == "operator" && k_.text(f.name_at + 1) == "(")
        most = std::max(most, of_parameter(f, place));
    for (std::size_t i = 0; i < k_.tokens.size(); ++i)
      if (k_.text(i) == name && k_.text(i + 1) == "=") return kBound;
    for (std::size_t i = k_.function.head + 1; i < k_.function.params_close; ++i)
      if (k_.text(i) == name && k_.text(i - 1) != "typename" && k_.text(i - 1) != "class") return kBound;
    return most;
  }

  // How many commas of a list lie before `end`.
  std::size_t place_in_list(std::size_t i, std::size_t end) const {
    std::size_t place = 0;
    for (; i < end; ++i) {
      i = behind_brackets(i);
      place += k_.text(i) == ",";
    }
    return place;
  }

  // The end of a bracket or of a list of template arguments that begins at `i`, else `i`.
  std::size_t behind_brackets(std::size_t i) const {
    const std::string_view t = k_.text(i);
    if (t == "(" || t == "[" || t == "{") return matching(k_.tokens, i);
    if (t == "<" && k_.is_name(i - 1)) {
      const std::size_t close = matching_angle(k_.tokens, i);
      const std::string_view next = k_.text(close + 1);
      if (close < k_.tokens.size() && (next == "(" || next == "::" || k_.is_name(close + 1) || next == "&" ||
                                       next == "*" || next == "&&" || next == "{"))
        return close;
    }
    return i;
  }

  Use of_parameter(const Function& f, std::size_t place) const {
    std::size_t first = f.params_open + 1, last = f.params_close;
    bool is_pack = false;
    for (std::size_t i = first; i < last; ++i) is_pack = is_pack || k_.text(i) == "...";
    for (std::size_t i = first, at = 0; !is_pack && i <= f.params_close; i = behind_brackets(i) + 1) {
      if (k_.text(i) != "," && i != f.params_close) continue;
      last = i;
      if (at++ == place) break;
      first = i + 1;
    }
    bool is_reference = false, is_const = false;
    for (std::size_t i = first; i < last; ++i) {
      const std::string_view t = k_.text(i);
      // A type of another name may be a reference, too.
      is_reference = is_reference || t == "&" || t == "&&" || t == "::" || k_.scan.macros.contains(t) ||
                     is_alias_of_reference(t);
      is_const = is_const || t == "const";
    }
    if (!is_reference) return kRead;
    return is_const ? kLent : kBound;
  }

  bool is_alias_of_reference(std::string_view name) const {
    for (std::size_t i = 0; i < k_.tokens.size(); ++i) {
      const bool is_using = k_.text(i) == "using";
      if (!is_using && k_.text(i) != "typedef") continue;
      bool named = false, reference = false;
      for (; i < k_.tokens.size() && k_.text(i) != ";"; ++i) {
        named = named || k_.text(i) == name;
        reference = reference || k_.text(i) == "&" || k_.text(i) == "&&" || k_.text(i) == "::";
      }
      if (named && reference) return true;
    }
    return false;
  }

  // `{v}` as a value: of a struct that may hold references, or a reference's.
  Use element(std::size_t open) const {
    const bool is_reference = k_.text(open - 2) == "&" || k_.text(open - 2) == "&&";
    return is_reference || !k_.scan.classes.empty() ? kBound : kRead;
  }

  // At the `=` whose right side the expression is, or begins.
  Use initial_value(std::size_t equals) const {
    std::size_t name = equals - 1;
    if (k_.text(name) == "]") name = opening_of(name);  // a structured binding
    if (k_.text(name) == ")") return kBound;            // `float (&r) = v`
    if (k_.text(name - 1) != "&" && k_.text(name - 1) != "&&") return kRead;
    for (std::size_t i = name - 1; k_.text(i) != ";" && k_.text(i) != "{" && k_.text(i) != "}"; --i)
      if (k_.text(i) == "const") return kLent;
    return kBound;
  }

  // Where the expression is one end of `c ? a : b`: goes on with the whole of that.
  bool whole_of_condition() {
    bool has_question = false;
    std::size_t i = first_ - 1;
    for (;; --i) {
      const std::string_view t = k_.text(i);
      if (t == ")" || t == "]" || t == "}") {
        i = opening_of(i);
        continue;
      }
      has_question = has_question || t == "?";
      if (t == "(" || t == "[" || t == "{" || t == "," || t == ";" || is_assignment(t) || t == "return")
        break;
    }
    if (!has_question) return false;
    first_ = i + 1;
    for (i = last_ + 1;; ++i) {
      const std::string_view t = k_.text(i);
      if (t == ")" || t == "]" || t == "}" || t == "," || t == ";" || is_assignment(t)) break;
      if (t == "(" || t == "[" || t == "{") i = matching(k_.tokens, i);
    }
    last_ = i - 1;
    return true;
  }

  const KernelText& k_;
  std::size_t first_, last_;  // the expression
};

}  // namespace

Use use_at(const KernelText& kernel, std::size_t i, std::size_t dimensions) {
  return UseReader(kernel, i).run(dimensions);
}

bool is_changed(const KernelText& kernel, std::string_view name, std::size_t first, std::size_t last,
                bool is_pointer) {
  for (std::size_t i = first; i <= last; ++i) {
    if (!kernel.is_name(i) || kernel.text(i) != name || kernel.text(i - 1) == "." ||
        kernel.text(i - 1) == "->")
      continue;
    if (is_pointer && (kernel.text(i + 1) == "[" || kernel.text(i + 1) == "->")) continue;
    if (use_at(kernel, i, 0) >= Use::kBound) return true;
  }
  return false;
}

}  // namespace warpsmith::toolchain
