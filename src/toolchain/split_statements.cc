#include "split_statements.h"

#include <algorithm>
#include <array>

#include "split_use.h"

namespace warpsmith::toolchain {

namespace {

using Kind = Statement::Kind;

// By the place in kShuffleNames: which lane a value comes from.
constexpr std::array<std::string_view, 4> kSourceNames = {"wstw_source_idx", "wstw_source_up",
                                                          "wstw_source_down", "wstw_source_xor"};

class StatementReader {
 public:
  StatementReader(const KernelText& kernel, std::vector<SplitEdit>& edits) : k_(kernel), edits_(edits) {}

  std::vector<Statement> parse(std::size_t first, std::size_t last) {
    std::vector<Statement> out;
    for (std::size_t i = first; i <= last;) {
      if (k_.text(i) == ";") {
        ++i;
        continue;
      }
      if (k_.tokens[i].kind == TokenKind::kDirective) {
        // `#pragma unroll` in front of a loop that waits goes; others stay with their loop.
        out.push_back(statement_after_pragma(i, last));
      } else {
        out.push_back(parse_one(i, last));
      }
      i = out.back().last + 1;
    }
    return out;
  }

 private:
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
    s.last = k_.end_of_statement(i);
    if (s.last > limit) throw NotSplit{};
    const std::string_view t = k_.text(i);
    if (k_.text(i) == "__shared__" || (t == "extern" && k_.text(i + 1) == "__shared__") ||
        (k_.is_name(i) && k_.text(i + 1) == "__shared__")) {
      s.kind = Kind::kShared;
      return s;
    }
    if (!k_.any_waits(s.first, s.last)) {
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
      s.head_close = matching(k_.tokens, i + 1);
      if (k_.any_waits(s.head_open, s.head_close)) throw NotSplit{};
      const std::size_t body = s.head_close + 1;
      const std::size_t body_last = k_.end_of_statement(body);
      if (body_last != s.last) throw NotSplit{};  // has an else
      s.braced = k_.text(body) == "{";
      s.body = s.braced ? parse(body + 1, body_last - 1) : std::vector<Statement>{parse_one(body, body_last)};
    } else if ((t == "__syncthreads" || t == "__syncwarp") && k_.text(i + 1) == "(" &&
               k_.text(i + 2) == ")" && k_.text(i + 3) == ";") {
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

  // `T a = e, *b, c[4];` with a type made of plain words.
  bool is_declaration(Statement& s) const {
    static const std::set<std::string, std::less<>> keywords = {
        "return", "if",       "for",  "while", "do",         "else",  "switch",
        "break",  "continue", "case", "goto",  "const_cast", "sizeof"};
    std::size_t i = s.first;
    if (k_.tokens[i].kind == TokenKind::kDirective || !k_.is_name(i) || keywords.contains(k_.text(i)))
      return false;
    std::string type;
    // Words of the type: all names but the last before a declarator.
    while (k_.is_name(i) &&
           (k_.is_name(i + 1) || k_.text(i + 1) == "*" || k_.text(i + 1) == "<" || k_.text(i + 1) == "::")) {
      if (k_.text(i + 1) == "<") {
        const std::size_t close = matching_angle(k_.tokens, i + 1);
        if (close >= s.last || !k_.is_name(close + 1)) return false;
        type += k_.words(i, close) + " ";
        i = close + 1;
        continue;
      }
      if (k_.text(i + 1) == "::") throw NotSplit{};
      type += std::string(k_.text(i)) + " ";
      ++i;
      if (k_.text(i) == "*") break;
    }
    if (type.empty()) return false;
    // `a * b;` as an expression: nobody writes that.
    s.type_last = i - 1;
    s.type = type;
    while (i <= s.last) {
      Declarator d;
      d.first = i;
      while (k_.text(i) == "*" || k_.text(i) == "__restrict__" || k_.text(i) == "const")
        d.stars += std::string(k_.text(i++)) + " ";
      if (!k_.is_name(i)) return false;
      d.name = std::string(k_.text(i));
      d.name_at = i++;
      while (k_.text(i) == "[") {
        const std::size_t close = matching(k_.tokens, i);
        d.dims += k_.words(i, close);
        i = close + 1;
      }
      if (k_.text(i) == "(" || k_.text(i) == "{") throw NotSplit{};
      if (k_.text(i) == "=") {
        d.equals = i;
        while (k_.text(i) != "," && k_.text(i) != ";") {
          if (k_.text(i) == "(" || k_.text(i) == "[" || k_.text(i) == "{") i = matching(k_.tokens, i);
          ++i;
        }
      }
      d.last = i - 1;
      s.declarators.push_back(d);
      if (k_.text(i) == ";") return i == s.last;
      if (k_.text(i) != ",") return false;
      ++i;
    }
    return false;
  }

  void read_shuffles(Statement& s) const {
    for (std::size_t i = s.first; i <= s.last; ++i) {
      const std::string_view t = k_.text(i);
      if (t == "?" || t == "&&" || t == "||") throw NotSplit{};  // may not be evaluated
      if (t == "__syncthreads" || t == "__syncwarp") throw NotSplit{};
      if (!k_.is_shuffle(t)) continue;
      Shuffle shuffle;
      shuffle.name_at = i;
      shuffle.close = matching(k_.tokens, i + 1);
      std::vector<std::string> arguments;
      std::size_t begin = i + 2;
      for (std::size_t k = begin; k <= shuffle.close; ++k) {
        if (k != i && k_.waits(k)) throw NotSplit{};
        if (k_.is_name(k) && (k_.scan.needs_context.contains(k_.text(k)) || k_.text(k) == "reinterpret_cast"))
          throw NotSplit{};
        if ((k_.text(k) == "," || k == shuffle.close) && k > begin) {
          arguments.push_back(k_.words(begin, k - 1));
          begin = k + 1;
        } else if (k_.text(k) == "(" || k_.text(k) == "[") {
          const std::size_t close = matching(k_.tokens, k);
          for (std::size_t n = k; n <= close; ++n)
            if (k_.waits(n) || (k_.is_name(n) && k_.scan.needs_context.contains(k_.text(n))))
              throw NotSplit{};
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
    if (s.declarators.empty()) check_order(s);
  }

  // `a = …, b = __shfl_sync(~0u, a, 0)`: the value is laid down before `a` has its own.
  void check_order(const Statement& s) const {
    for (std::size_t i = s.first; i <= s.last; ++i) {
      const std::string_view t = k_.text(i);
      if (t == "(" || t == "[" || t == "{") i = matching(k_.tokens, i);
      if (t != ",") continue;
      for (std::size_t n = s.first; n < i; ++n)
        for (const Shuffle& shuffle : s.shuffles) {
          if (!k_.is_name(n) || shuffle.name_at < i) continue;
          for (std::size_t m = shuffle.name_at; m < shuffle.close; ++m)
            if (k_.text(m) == k_.text(n) && is_changed(k_, k_.text(n), n, n)) throw NotSplit{};
        }
    }
  }

  static bool is_full_mask(std::string mask) {
    std::transform(mask.begin(), mask.end(), mask.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return mask == "0xffffffff" || mask == "0xffffffffu" || mask == "~ 0u" || mask == "~ 0" ||
           mask == "- 1" || mask == "0xfffffffful";
  }

  const KernelText& k_;
  std::vector<SplitEdit>& edits_;
};

}  // namespace

std::vector<Statement> read_statements(const KernelText& kernel, std::vector<SplitEdit>& edits) {
  return StatementReader(kernel, edits).parse(kernel.function.body_open + 1, kernel.function.body_close - 1);
}

}  // namespace warpsmith::toolchain
