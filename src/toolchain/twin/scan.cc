#include "scan.h"

#include <algorithm>

namespace warpsmith::toolchain {

namespace {

// Names that take an argument list in front of a function's own name.
constexpr std::string_view kNotFunctions =
    "__launch_bounds__ __align__ alignas __attribute__ decltype __maxnreg__ noexcept static_assert";

// Everything that waits for other threads asks who runs it, too.
bool name_needs_context(std::string_view name) {
  return name_waits(name) ||
         is_listed("__shared__ threadIdx blockIdx blockDim gridDim this_thread_block this_grid", name);
}

class Scanner {
 public:
  explicit Scanner(const CleanSource& source) : source_(source), tokens_(source.tokens) {}

  Scan run() {
    scope(0, tokens_.size(), "");
    for (std::size_t i = 0; i < tokens_.size(); ++i)
      if (tokens_[i].kind == TokenKind::kDirective) note_macro(i);
    close_sets();
    return std::move(scan_);
  }

 private:
  std::string_view text(std::size_t i) const { return source_.token_text(i); }
  bool is_name(std::size_t i) const { return source_.is_name(i); }
  [[noreturn]] void fail(std::size_t i, std::string message) const {
    throw problem_at(source_, i, std::move(message), false);
  }

  // Declarations of [begin, end), at namespace scope or in the class `class_name`.
  void scope(std::size_t begin, std::size_t end, const std::string& class_name) {
    std::size_t i = begin;
    while (i < end) {
      if (tokens_[i].kind == TokenKind::kDirective || text(i) == ";") {
        ++i;
        continue;
      }
      if (!class_name.empty() && is_name(i) && text(i + 1) == ":" &&
          (text(i) == "public" || text(i) == "private" || text(i) == "protected")) {
        i += 2;
        continue;
      }
      i = declaration(i, end, class_name);
    }
  }

  // What is known of a declaration up to a token of it.
  struct Declared {
    Function function;
    bool has_name = false, assigned = false, members = false, shared = false, is_using = false;
    std::string_view introducer;  // namespace, struct, class, union, enum
    std::string introduced;
  };

  // One declaration that begins at `head`; gives the place behind it.
  std::size_t declaration(std::size_t head, std::size_t end, const std::string& class_name) {
    Declared d;
    Function& f = d.function;
    f.head = head;
    f.in_class = !class_name.empty();
    f.class_name = class_name;
    for (std::size_t i = head; i < end;) {
      const std::string_view t = text(i);
      if (tokens_[i].kind == TokenKind::kDirective) {
        ++i;
      } else if (t == "template" && text(i + 1) == "<") {
        f.is_template = true;
        const std::size_t close = matching_angle(tokens_, i + 1);
        if (close >= end) fail(i, "a template parameter list does not end");
        i = close + 1;
      } else if (t == ";") {
        if (d.shared)
          scan_.file_shared.emplace_back(head, i);
        else if (d.has_name && !d.assigned && !d.is_using)
          add_function(f);
        return i + 1;
      } else if (t == "(" || t == "[") {
        const std::size_t close = matching(tokens_, i);
        if (close >= end) fail(i, t == "(" ? "a `(` is not closed" : "a `[` is not closed");
        i = close + 1;
      } else if (t == "{") {
        const std::size_t close = matching(tokens_, i);
        if (close >= tokens_.size()) fail(i, "a `{` is not closed");
        if (braces(d, i, close)) return close + 1;
        i = close + 1;
      } else if (t == "}" || t == ")" || t == "]") {
        fail(i, "unexpected `" + std::string(t) + "`");
      } else if (t == "=") {
        // `= default`, `= delete` and `= 0` end a function's declaration; elsewhere a variable gets its
        // value.
        d.assigned = true;
        ++i;
      } else if (t == ":" && d.has_name) {
        d.members = true;
        ++i;
      } else if (is_name(i)) {
        take_word(d, t);
        i = behind_name(d, i, end);
      } else {
        ++i;
      }
    }
    // The end of the file without `;`: the compiler says what is missing.
    return end;
  }

  // The braces at `i`; whether the declaration ends with them.
  bool braces(Declared& d, std::size_t i, std::size_t close) {
    const bool initialiser =
        d.assigned || (d.has_name && d.members && is_name(i - 1) && text(i - 1) != "const");
    if (initialiser) return false;
    if (d.has_name) {
      d.function.body_open = i;
      d.function.body_close = close;
      add_function(d.function);
      return true;
    }
    const std::size_t head = d.function.head;
    if (d.introducer != "enum" &&
        (d.introducer == "namespace" || (head + 2 == i && text(head) == "extern"))) {
      scope(i + 1, close, "");
      return true;
    }
    if (d.introducer == "struct" || d.introducer == "class" || d.introducer == "union") {
      if (!d.introduced.empty()) scan_.classes.insert(d.introduced);
      scope(i + 1, close, d.introduced.empty() ? "?" : d.introduced);
    }
    return false;
  }

  static void take_word(Declared& d, std::string_view t) {
    Function& f = d.function;
    if (t == "__global__")
      f.is_global = true;
    else if (t == "__device__")
      f.is_device = true;
    else if (t == "constexpr" || t == "consteval")
      f.is_constexpr = true;
    else if (t == "__shared__")
      d.shared = true;
    else if (t == "using" || t == "typedef" || t == "friend")
      d.is_using = true;
    else if (d.introducer.empty() &&
             (t == "namespace" || t == "struct" || t == "class" || t == "union" || t == "enum"))
      d.introducer = t;
    else if (!d.introducer.empty() && d.introduced.empty() && t != "alignas" && t != "__align__" &&
             t != "class")
      d.introduced = t;
  }

  // The place behind the name at `i` and what belongs to it.
  std::size_t behind_name(Declared& d, std::size_t i, std::size_t end) {
    const std::string_view t = text(i);
    const bool skipped = is_listed(kNotFunctions, t);
    if (t == "operator" && !d.has_name && !d.assigned) {
      std::size_t open = i + 1;
      if (text(open) == "(" && text(open + 1) == ")") open += 2;
      while (open < end && text(open) != "(") ++open;
      name_function(d.function, "operator", i, open, end, &d.has_name);
      return d.has_name ? d.function.params_close + 1 : i + 1;
    }
    if (text(i + 1) == "(" && !skipped && !d.has_name && !d.assigned && !d.shared) {
      name_function(d.function, std::string(t), i, i + 1, end, &d.has_name);
      return d.function.params_close + 1;
    }
    if (text(i + 1) == "<" && !d.has_name && !d.assigned) {
      // A template's explicit specialisation, `void k<float>(…)`, or a template-id in a type.
      const std::size_t close = matching_angle(tokens_, i + 1);
      if (close < end && text(close + 1) == "(" && !d.shared) {
        name_function(d.function, std::string(t), i, close + 1, end, &d.has_name);
        return d.function.params_close + 1;
      }
      return close < end ? close + 1 : i + 1;
    }
    if (skipped && text(i + 1) == "(") return std::min(matching(tokens_, i + 1), end - 1) + 1;
    return i + 1;
  }

  void name_function(Function& f, std::string name, std::size_t at, std::size_t open, std::size_t end,
                     bool* has_name) {
    const std::size_t close = matching(tokens_, open);
    if (close >= end) fail(open, "a `(` is not closed");
    f.name = std::move(name);
    f.name_at = at;
    f.params_open = open;
    f.params_close = close;
    *has_name = true;
  }

  void add_function(const Function& f) { scan_.functions.push_back(f); }

  void note_macro(std::size_t i) {
    const std::vector<Token> tokens = tokens_of(tokens_[i].text.substr(1), tokens_[i].line);
    if (tokens.size() < 2 || tokens[0].text != "define") return;
    scan_.macros[std::string(tokens[1].text)].push_back(i);
    std::set<std::string, std::less<>>& mentions = mentions_[std::string(tokens[1].text)];
    for (std::size_t k = 2; k < tokens.size(); ++k)
      if (tokens[k].kind == TokenKind::kIdentifier) mentions.insert(std::string(tokens[k].text));
  }

  // Sets grow by who mentions whom until nothing changes.
  void close_sets() {
    for (const Function& f : scan_.functions) {
      std::set<std::string, std::less<>>& mentions = mentions_[f.name];
      if (f.is_global) scan_.needs_context.insert(f.name);
      const std::size_t last = f.defined() ? f.body_close : f.params_close;
      for (std::size_t i = f.params_open; i <= last; ++i)
        if (is_name(i)) mentions.insert(std::string(text(i)));
      if (f.defined())
        for (const auto& [begin, stop] : scan_.file_shared)
          for (std::size_t i = begin; i < stop; ++i)
            if (is_name(i) && text(i) != "float" && mentions.contains(text(i))) mentions.insert("__shared__");
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& [name, mentions] : mentions_)
        for (const std::string& m : mentions) {
          if (name_needs_context(m) || scan_.needs_context.contains(m))
            changed |= scan_.needs_context.insert(name).second;
          if (name_waits(m) || scan_.waits.contains(m)) changed |= scan_.waits.insert(name).second;
          if (m == "this_grid" || m == "grid_group" || scan_.grid_syncs.contains(m))
            changed |= scan_.grid_syncs.insert(name).second;
        }
    }
  }

  const CleanSource& source_;
  const std::vector<Token>& tokens_;
  Scan scan_;
  std::map<std::string, std::set<std::string, std::less<>>> mentions_;
};

}  // namespace

bool name_waits(std::string_view name) {
  return is_listed(
      "__syncthreads __syncthreads_count __syncthreads_and __syncthreads_or __syncwarp __activemask "
      "this_grid "
      "this_thread_block __shfl_sync __shfl_up_sync __shfl_down_sync __shfl_xor_sync __ballot_sync "
      "__any_sync "
      "__all_sync __match_any_sync __reduce_add_sync __reduce_min_sync __reduce_max_sync __reduce_and_sync "
      "__reduce_or_sync __reduce_xor_sync thread_block_tile thread_block grid_group tiled_partition",
      name);
}

std::size_t matching(const std::vector<Token>& tokens, std::size_t open) {
  std::string stack;
  for (std::size_t i = open; i < tokens.size(); ++i) {
    if (tokens[i].kind != TokenKind::kPunctuation) continue;
    const std::string_view t = tokens[i].text;
    if (t == "(" || t == "[" || t == "{")
      stack += t == "(" ? ')' : t == "[" ? ']' : '}';
    else if (t == ")" || t == "]" || t == "}") {
      if (stack.empty() || stack.back() != t[0]) return tokens.size();
      stack.pop_back();
      if (stack.empty()) return i;
    }
  }
  return tokens.size();
}

std::size_t matching_angle(const std::vector<Token>& tokens, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < tokens.size(); ++i) {
    if (tokens[i].kind == TokenKind::kDirective) return tokens.size();
    if (tokens[i].kind != TokenKind::kPunctuation) continue;
    const std::string_view t = tokens[i].text;
    if (t == "(" || t == "[" || t == "{") {
      i = matching(tokens, i);
      if (i >= tokens.size()) return i;
    } else if (t == "<") {
      ++depth;
    } else if (t == ">" || t == ">>" || t == ">>>") {
      depth -= static_cast<int>(t.size());
      if (depth <= 0) return i;
    } else if (t == ";" || t == ")" || t == "]" || t == "}" || t == "&&" || t == "||") {
      return tokens.size();
    }
  }
  return tokens.size();
}

Scan scan_source(const CleanSource& source) { return Scanner(source).run(); }

}  // namespace warpsmith::toolchain
