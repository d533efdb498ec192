#include "split.h"

#include <algorithm>
#include <array>
#include <map>

namespace warpsmith::toolchain {

namespace {

// Thrown inside this file: the kernel has a form that is left to fibers.
struct NotSplit {};

enum class Kind { kPlain, kDeclaration, kShared, kBarrier, kShuffles, kFor, kIf, kBlock };

struct Declarator {
  std::string name;
  std::size_t first = 0, name_at = 0, last = 0;  // tokens; `first` includes stars
  std::size_t equals = 0;                        // 0: no initial value
  std::string stars, dims;
};

struct Shuffle {
  std::size_t name_at = 0, close = 0;
  std::string value, source;  // texts
};

struct Statement {
  Kind kind = Kind::kPlain;
  std::size_t first = 0, last = 0;            // tokens, both included
  std::size_t head_open = 0, head_close = 0;  // for, if
  std::vector<Statement> body;
  bool braced = false, uniform = false;
  std::size_t type_last = 0;  // declarations
  std::string type;
  std::vector<Declarator> declarators;
  std::vector<Shuffle> shuffles;
};

// A variable declared between regions.
struct Variable {
  std::string name, type, dims;
  std::size_t scope_first = 0, scope_last = 0;  // tokens where the name means it
  int region = -1;                              // that declares it
  bool is_private = false, hoisted = false;     // an array with an element a thread; one for the block
  int id = 0;
};

struct Region {
  std::size_t first = 0, last = 0;
  std::vector<const Statement*> statements;
  int mask = 0;                          // innermost branch that not all threads take; 0: none
  const Statement* puts = nullptr;       // shuffles whose values are laid down at its end
  bool empty = false;                    // has no statement, only puts
  const Statement* condition = nullptr;  // computes the mask `made`
  int made = 0;
};

constexpr std::array<std::string_view, 4> kShuffleNames = {"__shfl_sync", "__shfl_up_sync",
                                                           "__shfl_down_sync", "__shfl_xor_sync"};
constexpr std::array<std::string_view, 4> kSourceNames = {"wstw_source_idx", "wstw_source_up",
                                                          "wstw_source_down", "wstw_source_xor"};

class Splitter {
 public:
  Splitter(const CleanSource& source, const Scan& scan, const Function& kernel)
      : source_(source), tokens_(source.tokens), scan_(scan), kernel_(kernel) {}

  std::vector<SplitEdit> run() {
    for (std::size_t i = kernel_.body_open; i < kernel_.body_close; ++i) look_at(i);
    read_parameters();
    std::vector<Statement> statements = parse(kernel_.body_open + 1, kernel_.body_close - 1);
    find_uniform(statements);
    plan(statements, 0, kernel_.body_close);
    close_region();
    settle_variables();
    emit();
    return std::move(edits_);
  }

 private:
  std::string_view text(std::size_t i) const {
    return i < tokens_.size() ? tokens_[i].text : std::string_view();
  }
  bool is_name(std::size_t i) const {
    return i < tokens_.size() && tokens_[i].kind == TokenKind::kIdentifier;
  }
  std::string words(std::size_t first, std::size_t last) const {  // tokens with spaces between
    std::string out;
    for (std::size_t i = first; i <= last; ++i) out += (out.empty() ? "" : " ") + std::string(text(i));
    return out;
  }
  static bool is_shuffle(std::string_view t) {
    return std::find(kShuffleNames.begin(), kShuffleNames.end(), t) != kShuffleNames.end();
  }

  // What no form of this file can hold.
  void look_at(std::size_t i) const {
    const std::string_view t = text(i);
    if (tokens_[i].kind == TokenKind::kDirective) {
      if (t.find("unroll") == std::string_view::npos) throw NotSplit{};
      return;
    }
    if (!is_name(i)) {
      // Lambdas: `[` that no value stands before.
      if (t == "[" && !(is_name(i - 1) || text(i - 1) == "]" || text(i - 1) == ")")) throw NotSplit{};
      return;
    }
    if (t == "goto" || t == "static" || t == "using" || t == "typedef" || t == "struct" || t == "volatile")
      throw NotSplit{};
    if (scan_.macros.contains(t)) {
      for (const std::size_t m : scan_.macros.find(t)->second)
        if (tokens_of(text(m).substr(1), 1).size() != 3) throw NotSplit{};  // only `#define NAME number`
      return;
    }
    const bool builtin = t == "__syncthreads" || t == "__syncwarp" || is_shuffle(t);
    if (waits(i) && !builtin) throw NotSplit{};
  }

  bool waits(std::size_t i) const {
    static const std::set<std::string, std::less<>> names = {
        "__syncthreads",     "__syncthreads_count", "__syncthreads_and", "__syncthreads_or",
        "__syncwarp",        "__activemask",        "this_grid",         "this_thread_block",
        "thread_block_tile", "thread_block",        "grid_group",        "tiled_partition",
        "__ballot_sync",     "__any_sync",          "__all_sync",        "__match_any_sync",
        "__reduce_add_sync", "__reduce_min_sync",   "__reduce_max_sync", "__reduce_and_sync",
        "__reduce_or_sync",  "__reduce_xor_sync"};
    return is_name(i) && (names.contains(text(i)) || is_shuffle(text(i)) || scan_.waits.contains(text(i)));
  }
  bool any_waits(std::size_t first, std::size_t last) const {
    for (std::size_t i = first; i <= last; ++i)
      if (waits(i)) return true;
    return false;
  }

  void read_parameters() {
    std::string last;
    for (std::size_t i = kernel_.params_open + 1; i <= kernel_.params_close; ++i) {
      if (text(i) == "," || i == kernel_.params_close) {
        if (!last.empty()) uniform_.insert(last);
        last.clear();
      } else if (is_name(i)) {
        last = std::string(text(i));
      }
    }
    // A block has one set of parameters here, and not one a thread.
    for (const std::string& name : uniform_)
      if (is_changed(name, kernel_.body_open, kernel_.body_close)) throw NotSplit{};
    if (kernel_.is_template && text(kernel_.head) == "template")
      for (std::size_t i = kernel_.head + 2; i < kernel_.name_at && text(i) != ">"; ++i)
        if (is_name(i)) template_names_.insert(std::string(text(i)));
  }

  // Whether something is assigned to the name, or its address taken.
  bool is_changed(std::string_view name, std::size_t first, std::size_t last) const {
    for (std::size_t i = first; i <= last; ++i) {
      if (text(i) != name || text(i - 1) == "." || text(i - 1) == "->") continue;
      const std::string_view next = text(i + 1), before = text(i - 1);
      if (next == "=" || next == "++" || next == "--" ||
          (next.size() >= 2 && next.back() == '=' && next != "==" && next != "<=" && next != ">=" &&
           next != "!="))
        return true;
      if (before == "++" || before == "--" ||
          (before == "&" && !is_name(i - 2) && text(i - 2) != ")" && text(i - 2) != "]" &&
           tokens_[i - 2].kind != TokenKind::kNumber))
        return true;
    }
    return false;
  }

  // The same for all threads of a block: numbers, what the block is, variables that are.
  bool is_uniform(std::size_t first, std::size_t last,
                  const std::set<std::string, std::less<>>& also = {}) const {
    for (std::size_t i = first; i <= last; ++i) {
      const std::string_view t = text(i);
      if (t == "[" || t == "->") return false;
      if (!is_name(i)) continue;
      if (text(i - 1) == ".") continue;
      if (t == "threadIdx" || (text(i + 1) == "(" && t != "min" && t != "max")) return false;
      if (t == "blockIdx" || t == "blockDim" || t == "gridDim" || t == "warpSize" || t == "min" ||
          t == "max" || t == "int" || t == "unsigned" || t == "long" || t == "float" || t == "const" ||
          t == "true" || t == "false" || scan_.macros.contains(t))
        continue;
      if (!uniform_.contains(t) && !also.contains(t) && !template_names_.contains(t)) return false;
    }
    return true;
  }

  // ---- statements ----

  std::vector<Statement> parse(std::size_t first, std::size_t last) {
    std::vector<Statement> out;
    for (std::size_t i = first; i <= last;) {
      if (text(i) == ";") {
        ++i;
        continue;
      }
      if (tokens_[i].kind == TokenKind::kDirective) {
        // `#pragma unroll` in front of a loop that waits goes; others stay with their loop.
        out.push_back(statement_after_pragma(i, last));
      } else {
        out.push_back(parse_one(i, last));
      }
      i = out.back().last + 1;
    }
    return out;
  }

  Statement statement_after_pragma(std::size_t at, std::size_t last) {
    Statement s = parse_one(at + 1, last);
    if (s.kind != Kind::kPlain)
      edits_.push_back({at, at, true, false, ""});
    else
      s.first = at;
    return s;
  }

  Statement parse_one(std::size_t i, std::size_t limit) {
    if (i > limit) throw NotSplit{};
    Statement s;
    s.first = i;
    s.last = end_of_statement(i);
    if (s.last > limit) throw NotSplit{};
    const std::string_view t = text(i);
    if (text(i) == "__shared__" || (t == "extern" && text(i + 1) == "__shared__") ||
        (is_name(i) && text(i + 1) == "__shared__")) {
      s.kind = Kind::kShared;
      return s;
    }
    if (!any_waits(s.first, s.last)) {
      if (is_declaration(s)) s.kind = Kind::kDeclaration;
      return s;
    }
    if (t == "{") {
      s.kind = Kind::kBlock;
      s.braced = true;
      s.body = parse(i + 1, s.last - 1);
    } else if (t == "for" || t == "if") {
      s.kind = t == "for" ? Kind::kFor : Kind::kIf;
      s.head_open = i + 1;
      s.head_close = matching(tokens_, i + 1);
      if (any_waits(s.head_open, s.head_close)) throw NotSplit{};
      const std::size_t body = s.head_close + 1;
      const std::size_t body_last = end_of_statement(body);
      if (body_last != s.last) throw NotSplit{};  // has an else
      s.braced = text(body) == "{";
      s.body = s.braced ? parse(body + 1, body_last - 1) : std::vector<Statement>{parse_one(body, body_last)};
    } else if ((t == "__syncthreads" || t == "__syncwarp") && text(i + 1) == "(" && text(i + 2) == ")" &&
               text(i + 3) == ";") {
      s.kind = Kind::kBarrier;
    } else if (t == "while" || t == "do" || t == "switch" || t == "return" || t == "else") {
      throw NotSplit{};
    } else {
      s.kind = Kind::kShuffles;
      if (is_declaration(s) && s.declarators.size() != 1) throw NotSplit{};
      read_shuffles(s);
    }
    return s;
  }

  // The last token of the statement that begins at `i`.
  std::size_t end_of_statement(std::size_t i) const {
    while (tokens_[i].kind == TokenKind::kDirective) ++i;
    const std::string_view t = text(i);
    if (t == "{") return matching(tokens_, i);
    if (t == "if" || t == "for" || t == "while" || t == "switch") {
      const std::size_t head = text(i + 1) == "constexpr" ? i + 2 : i + 1;
      if (text(head) != "(") throw NotSplit{};
      std::size_t end = end_of_statement(matching(tokens_, head) + 1);
      if (t == "if" && text(end + 1) == "else") end = end_of_statement(end + 2);
      return end;
    }
    if (t == "do") {
      const std::size_t body = end_of_statement(i + 1);
      return matching(tokens_, body + 2) + 1;
    }
    for (; i < kernel_.body_close; ++i) {
      if (text(i) == "(" || text(i) == "[" || text(i) == "{")
        i = matching(tokens_, i);
      else if (text(i) == ";")
        return i;
    }
    throw NotSplit{};
  }

  // `T a = e, *b, c[4];` with a type made of plain words.
  bool is_declaration(Statement& s) const {
    static const std::set<std::string, std::less<>> keywords = {
        "return", "if",       "for",  "while", "do",         "else",  "switch",
        "break",  "continue", "case", "goto",  "const_cast", "sizeof"};
    std::size_t i = s.first;
    if (tokens_[i].kind == TokenKind::kDirective || !is_name(i) || keywords.contains(text(i))) return false;
    std::string type;
    // Words of the type: all names but the last before a declarator.
    while (is_name(i) &&
           (is_name(i + 1) || text(i + 1) == "*" || text(i + 1) == "<" || text(i + 1) == "::")) {
      if (text(i + 1) == "<") {
        const std::size_t close = matching_angle(tokens_, i + 1);
        if (close >= s.last || !is_name(close + 1)) return false;
        type += words(i, close) + " ";
        i = close + 1;
        continue;
      }
      if (text(i + 1) == "::") throw NotSplit{};
      type += std::string(text(i)) + " ";
      ++i;
      if (text(i) == "*") break;
    }
    if (type.empty()) return false;
    // `a * b;` as an expression: nobody writes that.
    s.type_last = i - 1;
    s.type = type;
    while (i <= s.last) {
      Declarator d;
      d.first = i;
      while (text(i) == "*" || text(i) == "__restrict__" || text(i) == "const")
        d.stars += std::string(text(i++)) + " ";
      if (!is_name(i)) return false;
      d.name = std::string(text(i));
      d.name_at = i++;
      while (text(i) == "[") {
        const std::size_t close = matching(tokens_, i);
        d.dims += words(i, close);
        i = close + 1;
      }
      if (text(i) == "(" || text(i) == "{") throw NotSplit{};
      if (text(i) == "=") {
        d.equals = i;
        while (text(i) != "," && text(i) != ";") {
          if (text(i) == "(" || text(i) == "[" || text(i) == "{") i = matching(tokens_, i);
          ++i;
        }
      }
      d.last = i - 1;
      s.declarators.push_back(d);
      if (text(i) == ";") return i == s.last;
      if (text(i) != ",") return false;
      ++i;
    }
    return false;
  }

  void read_shuffles(Statement& s) const {
    for (std::size_t i = s.first; i <= s.last; ++i) {
      const std::string_view t = text(i);
      if (t == "?" || t == "&&" || t == "||") throw NotSplit{};  // may not be evaluated
      if (t == "__syncthreads" || t == "__syncwarp") throw NotSplit{};
      if (!is_shuffle(t)) continue;
      Shuffle shuffle;
      shuffle.name_at = i;
      shuffle.close = matching(tokens_, i + 1);
      std::vector<std::string> arguments;
      std::size_t begin = i + 2;
      for (std::size_t k = begin; k <= shuffle.close; ++k) {
        if (k != i && waits(k)) throw NotSplit{};
        if (is_name(k) && (scan_.needs_context.contains(text(k)) || text(k) == "reinterpret_cast"))
          throw NotSplit{};
        if ((text(k) == "," || k == shuffle.close) && k > begin) {
          arguments.push_back(words(begin, k - 1));
          begin = k + 1;
        } else if (text(k) == "(" || text(k) == "[") {
          const std::size_t close = matching(tokens_, k);
          for (std::size_t n = k; n <= close; ++n)
            if (waits(n) || (is_name(n) && scan_.needs_context.contains(text(n)))) throw NotSplit{};
          k = close;
        }
      }
      if (arguments.size() < 3 || arguments.size() > 4 || !is_full_mask(arguments[0])) throw NotSplit{};
      shuffle.value = arguments[1];
      const auto which = static_cast<std::size_t>(std::find(kShuffleNames.begin(), kShuffleNames.end(), t) -
                                                  kShuffleNames.begin());
      shuffle.source = std::string(kSourceNames[which]) + "(wstw_t & 31u, " + arguments[2] + ", " +
                       (arguments.size() == 4 ? arguments[3] : "32") + ")";
      i = shuffle.close;
      s.shuffles.push_back(shuffle);
    }
    if (s.shuffles.empty()) throw NotSplit{};
  }

  static bool is_full_mask(std::string mask) {
    std::transform(mask.begin(), mask.end(), mask.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return mask == "0xffffffff" || mask == "0xffffffffu" || mask == "~ 0u" || mask == "~ 0" ||
           mask == "- 1" || mask == "0xfffffffful";
  }

  // ---- what is the same for all threads ----

  void find_uniform(std::vector<Statement>& statements) {
    for (Statement& s : statements) {
      if (s.kind == Kind::kDeclaration) {
        for (const Declarator& d : s.declarators)
          if (d.equals != 0 && d.dims.empty() && d.stars.empty() && is_uniform(d.equals + 1, d.last) &&
              !is_changed(d.name, d.last + 1, kernel_.body_close) && !twice(d.name))
            uniform_.insert(d.name);
      } else if (s.kind == Kind::kFor) {
        const std::string counter = loop_counter(s);
        if (counter.empty()) throw NotSplit{};
        uniform_.insert(counter);
        s.uniform = true;
      } else if (s.kind == Kind::kIf) {
        s.uniform = is_uniform(s.head_open + 1, s.head_close - 1);
      }
      find_uniform(s.body);
    }
  }

  bool twice(const std::string& name) const {  // declared more than once, as far as can be seen
    int n = 0;
    for (std::size_t i = kernel_.body_open; i < kernel_.body_close; ++i)
      if (text(i) == name && (is_name(i - 1) || text(i - 1) == "*") && text(i + 1) == "=") ++n;
    return n > 1;
  }

  // `for (int h = e; h > e; h /= e)`, all of it uniform: its counter's name. Else empty.
  std::string loop_counter(const Statement& s) const {
    std::size_t i = s.head_open + 1;
    while (text(i) == "int" || text(i) == "unsigned" || text(i) == "long" || text(i) == "size_t") ++i;
    if (i == s.head_open + 1 || !is_name(i) || text(i + 1) != "=") return "";
    const std::string counter(text(i));
    const std::size_t first_end = end_of_statement(i);
    const std::size_t second_end = end_of_statement(first_end + 1);
    for (std::size_t k = i + 2; k < first_end; ++k)
      if (text(k) == ",") return "";
    if (!is_uniform(i + 2, first_end - 1) || !is_uniform(first_end + 1, second_end - 1, {counter}) ||
        !is_uniform(second_end + 1, s.head_close - 1, {counter}))
      return "";
    for (std::size_t k = second_end + 1; k < s.head_close; ++k)
      if (text(k) == ",") return "";
    if (is_changed(counter, s.head_close + 1, s.last)) return "";
    // Nobody leaves such a loop early. Loops inside a region may.
    return counter;
  }

  // ---- regions ----

  void plan(const std::vector<Statement>& statements, int mask, std::size_t scope_last) {
    for (const Statement& s : statements) {
      switch (s.kind) {
        case Kind::kPlain:
          check_plain(s);
          add_to_region(s, mask);
          break;
        case Kind::kDeclaration:
          plan_declaration(s, mask, scope_last);
          break;
        case Kind::kShared:
          close_region();
          break;
        case Kind::kBarrier:
          if (mask != 0 && text(s.first) == "__syncthreads") throw NotSplit{};
          close_region();
          edits_.push_back({s.first, s.last, true, false, ";"});
          break;
        case Kind::kShuffles: {
          put_at_end(s, mask);
          if (!s.declarators.empty())
            plan_declaration(s, mask, scope_last);
          else
            add_to_region(s, mask);
          break;
        }
        case Kind::kBlock:
          close_region();
          plan(s.body, mask, s.last);
          close_region();
          break;
        case Kind::kFor:
        case Kind::kIf: {
          close_region();
          int inner = mask;
          if (!s.uniform) {
            inner = ++masks_;
            Region r;
            r.mask = mask;
            r.condition = &s;
            r.made = inner;
            r.first = s.head_open;
            r.last = s.head_close;
            regions_.push_back(r);
          }
          plan(s.body, inner, s.last);
          close_region();
          if (!s.braced) braces_.push_back(&s);
          break;
        }
      }
    }
  }

  // A statement of a region may leave the thread, but not a loop around regions.
  void check_plain(const Statement& s) {
    int loops = 0;
    check_jumps(s.first, s.last, loops);
  }

  void check_jumps(std::size_t first, std::size_t last, int loops) {
    for (std::size_t i = first; i <= last; ++i) {
      const std::string_view t = text(i);
      if (t == "for" || t == "while" || t == "do" || t == "switch") {
        const std::size_t end = end_of_statement(i);
        check_jumps(i + 1, end, loops + 1);
        i = end;
      } else if ((t == "break" || t == "continue") && loops == 0) {
        throw NotSplit{};
      } else if (t == "return") {
        if (loops > 0 || text(i + 1) != ";") throw NotSplit{};
        returns_ = true;
        edits_.push_back({i, i + 1, true, false, "{ wstw_gone[wstw_t] = wstw_dead = true; continue; }"});
      }
    }
  }

  void add_to_region(const Statement& s, int mask) {
    if (!open_) {
      Region r;
      r.first = s.first;
      r.mask = mask;
      regions_.push_back(r);
      open_ = true;
    }
    regions_.back().last = s.last;
    regions_.back().statements.push_back(&s);
  }

  void close_region() { open_ = false; }

  // The values of shuffles are laid down at the end of the region before, or in one of their own.
  void put_at_end(const Statement& s, int mask) {
    if (!open_) {
      Region r;
      r.first = r.last = s.first;
      r.mask = mask;
      r.empty = true;
      regions_.push_back(r);
    }
    regions_.back().puts = &s;
    open_ = false;
  }

  void plan_declaration(const Statement& s, int mask, std::size_t scope_last) {
    bool all_uniform = s.kind == Kind::kDeclaration, needed = false;
    for (const Declarator& d : s.declarators) {
      all_uniform = all_uniform && uniform_.contains(d.name);
      needed = needed || (uniform_.contains(d.name) && in_heads(d.name));
    }
    if (needed && !all_uniform) throw NotSplit{};
    if (all_uniform && mask == 0 && (needed || !open_)) {
      close_region();
      return;  // stands as it is, once for the block
    }
    if (needed) throw NotSplit{};
    add_to_region(s, mask);
    static const std::set<std::string, std::less<>> dropped = {"const", "constexpr"};
    for (const Declarator& d : s.declarators) {
      Variable v;
      v.name = d.name;
      v.dims = d.dims;
      std::string type;
      const std::vector<Token> type_words = tokens_of(s.type, 1);
      for (const Token& w : type_words)
        if (!dropped.contains(w.text) || !d.stars.empty()) type += std::string(w.text) + " ";
      std::string stars = d.stars;
      // `T* const p`: the pointer itself changes when it gets its value.
      for (const char* word : {"const ", "__restrict__ "})
        for (std::size_t at = stars.find(word); at != std::string::npos; at = stars.find(word))
          stars.erase(at, std::string(word).size());
      v.type = type + stars;
      v.scope_first = d.name_at;
      v.scope_last = scope_last;
      v.region = static_cast<int>(regions_.size()) - 1;
      v.id = static_cast<int>(variables_.size());
      variables_.push_back(v);
      declared_by_.push_back({&s, &d});
    }
  }

  // Whether a condition or a loop around regions mentions the name.
  bool in_heads(const std::string& name) const {
    for (std::size_t i = kernel_.body_open; i < kernel_.body_close; ++i) {
      if ((text(i) != "for" && text(i) != "if") || text(i + 1) != "(") continue;
      if (!any_waits(i, end_of_statement(i))) continue;
      const std::size_t close = matching(tokens_, i + 1);
      for (std::size_t k = i + 2; k < close; ++k)
        if (text(k) == name) return true;
    }
    return false;
  }

  bool mentions(const Variable& v, std::size_t first, std::size_t last) const {
    for (std::size_t i = std::max(first, v.scope_first); i <= std::min(last, v.scope_last); ++i)
      if (is_name(i) && text(i) == v.name && text(i - 1) != "." && text(i - 1) != "->") return true;
    return false;
  }

  // A variable that only its own region mentions stays a variable.
  void settle_variables() {
    for (Variable& v : variables_) {
      const Region& own = regions_[static_cast<std::size_t>(v.region)];
      for (std::size_t i = v.scope_first; i <= v.scope_last && !v.is_private; ++i)
        if (mentions(v, i, i) && (i < own.first || i > own.last)) v.is_private = true;
      if (own.puts != nullptr && mentions(v, own.puts->first, own.puts->last)) v.is_private = true;
    }
    for (std::size_t n = 0; n < variables_.size(); ++n) {
      // One declaration, one fate.
      for (std::size_t m = 0; m < variables_.size(); ++m)
        if (declared_by_[n].first == declared_by_[m].first && variables_[m].is_private)
          variables_[n].is_private = true;
      if (variables_[n].is_private && variables_[n].type.find("auto") != std::string::npos) throw NotSplit{};
    }
  }

  // ---- text ----

  void emit() {
    std::string start = " WSTW_BLOCK_BEGIN ";
    if (returns_) start += "bool wstw_gone[1024] = {}; bool wstw_dead = false; ";
    for (int m = 1; m <= masks_; ++m) start += "bool wstw_m" + std::to_string(m) + "[1024]; ";
    for (const Variable& v : variables_)
      if (v.is_private) start += v.type + " " + array_of(v) + "[1024]" + v.dims + "; ";
    int puts = 0;
    for (const Region& r : regions_) {
      if (r.puts == nullptr) continue;
      for (std::size_t k = 0; k < r.puts->shuffles.size(); ++k, ++puts) {
        const std::string n = std::to_string(puts);
        start += "alignas(64) char wstw_s" + n + "[8192]; unsigned wstw_i" + n + "[1024]; ";
        const Shuffle& shuffle = r.puts->shuffles[k];
        edits_.push_back({shuffle.name_at, shuffle.close, true, false,
                          "wstw_take<wstw_plain<decltype(" + shuffle.value + ")> >(wstw_s" + n + ", wstw_i" +
                              n + "[wstw_t], wstw_t, WSTW_IN_BLOCK(wstw_i" + n + "[wstw_t])" +
                              and_active(r.mask, "wstw_i" + n + "[wstw_t] + (wstw_t & ~31u)") + ")"});
      }
    }
    edits_.push_back({kernel_.body_open, kernel_.body_open, false, true, start});
    puts = 0;
    for (const Region& r : regions_) emit_region(r, &puts);
    for (const Statement* s : braces_) {
      if (s->kind == Kind::kIf && !s->uniform) continue;
      edits_.push_back({s->head_close, s->head_close, false, true, " {"});
      edits_.push_back({s->last, s->last, false, true, " }"});
    }
    for (std::size_t n = 0; n < variables_.size(); ++n)
      if (variables_[n].is_private) emit_assignment(*declared_by_[n].first, *declared_by_[n].second);
  }

  static std::string array_of(const Variable& v) { return "wstw_p" + std::to_string(v.id) + "_" + v.name; }

  std::string and_active(int mask, const std::string& index) const {
    std::string out;
    if (returns_) out += " && !(wstw_dead && wstw_gone[" + index + "])";
    if (mask != 0) out += " && wstw_m" + std::to_string(mask) + "[" + index + "]";
    return out;
  }

  // The loop over threads, what is skipped, names of the arrays' elements.
  std::string opening(const Region& r) const {
    std::string out = "WSTW_THREADS { WSTW_THREAD ";
    if (returns_) out += "if (wstw_dead && wstw_gone[wstw_t]) continue; ";
    if (r.mask != 0) out += "if (!wstw_m" + std::to_string(r.mask) + "[wstw_t]) continue; ";
    for (const Variable& v : variables_) {
      if (!v.is_private) continue;
      const bool used = (!r.empty && mentions(v, r.first, r.last)) ||
                        (r.puts != nullptr && mentions(v, r.puts->first, r.puts->last));
      if (used) out += "auto& " + v.name + " = " + array_of(v) + "[wstw_t]; ";
    }
    return out;
  }

  void emit_region(const Region& r, int* puts) {
    std::string end;
    if (r.puts != nullptr)
      for (const Shuffle& s : r.puts->shuffles) {
        const std::string n = std::to_string((*puts)++);
        end += " wstw_put(wstw_s" + n + ", wstw_t, " + s.value + "); wstw_i" + n + "[wstw_t] = " + s.source +
               ";";
      }
    if (r.condition != nullptr) {
      const std::string m = "wstw_m" + std::to_string(r.made);
      edits_.push_back({r.condition->first, r.condition->first, true, false,
                        "__builtin_memset(" + m + ", 0, 1024); " + opening(r) + m + "[wstw_t] = (bool)"});
      const std::string gone = returns_ ? "wstw_dead ? wstw_gone : nullptr" : "nullptr";
      edits_.push_back(
          {r.condition->head_close, r.condition->head_close, false, true,
           "; } wstw_check_warps(wstw_o, " + m + ", " + gone + ");" + (r.condition->braced ? "" : "")});
      return;
    }
    if (r.empty) {
      edits_.push_back({r.first, r.first, false, false, opening(r) + end + " } "});
      return;
    }
    edits_.push_back({r.first, r.first, false, false, opening(r)});
    edits_.push_back({r.last, r.last, false, true, end + " }"});
  }

  // `float a = 0.f, b[4];` of arrays: what is left are assignments.
  void emit_assignment(const Statement& s, const Declarator& d) {
    const bool first = &d == &s.declarators.front();
    if (first) edits_.push_back({s.first, s.type_last, true, false, ""});
    if (d.dims.empty() && d.equals != 0) {
      if (d.first != d.name_at) edits_.push_back({d.first, d.name_at - 1, true, false, ""});
      return;
    }
    if (d.equals == 0) {
      edits_.push_back({d.first, d.last, true, false, "(void)0"});
      return;
    }
    const std::string value = words(d.equals + 1, d.last);
    if (value != "{ }" && value != "{ 0 }" && value != "{ 0.f }" && value != "{ 0.0f }") throw NotSplit{};
    edits_.push_back(
        {d.first, d.last, true, false, "(void)__builtin_memset(&" + d.name + ", 0, sizeof(" + d.name + "))"});
  }

  const CleanSource& source_;
  const std::vector<Token>& tokens_;
  const Scan& scan_;
  const Function& kernel_;
  std::set<std::string, std::less<>> uniform_, template_names_;
  std::vector<Region> regions_;
  std::vector<Variable> variables_;
  std::vector<std::pair<const Statement*, const Declarator*>> declared_by_;
  std::vector<const Statement*> braces_;
  std::vector<SplitEdit> edits_;
  bool open_ = false, returns_ = false;
  int masks_ = 0;
};

}  // namespace

std::optional<std::vector<SplitEdit>> split_kernel(const CleanSource& source, const Scan& scan,
                                                   const Function& kernel) {
  if (!kernel.defined() || !scan.waits.contains(kernel.name)) return std::nullopt;
  int definitions = 0;
  for (const Function& f : scan.functions) definitions += f.name == kernel.name && f.defined();
  if (definitions != 1) return std::nullopt;
  try {
    return Splitter(source, scan, kernel).run();
  } catch (const NotSplit&) {
    return std::nullopt;
  }
}

}  // namespace warpsmith::toolchain
