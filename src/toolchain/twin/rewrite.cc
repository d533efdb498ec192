#include "rewrite.h"

#include <algorithm>

#include "guard.h"
#include "rewrite_casts.h"
#include "rewrite_shared.h"
#include "rewrite_shifts.h"

namespace warpsmith::toolchain {

namespace {

constexpr std::string_view kContextParameter = "const wstw_ctx& wstw_";

class Rewriter {
 public:
  Rewriter(const CleanSource& source, const Scan& scan)
      : source_(source), tokens_(source.tokens), scan_(scan), edits_(source) {
    for (const Function& f : scan.functions) functions_.insert(f.name);
  }

  Rewritten run() {
    for (const Function& f : scan_.functions) rewrite_function(f);
    rewrite_file_shared(source_, scan_, edits_);
    rewrite_shifts(source_, templates_, edits_);
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].kind == TokenKind::kDirective)
        rewrite_directive(i);
      else if (tokens_[i].kind == TokenKind::kIdentifier)
        rewrite_name(source_, i, false, edits_);
      if (text(i) == "(") rewrite_cast(source_, cast_names_, i, edits_);
    }
    SourceEdits::Result result = edits_.apply();
    return {std::move(result.text), std::move(result.insertions)};
  }

 private:
  std::string_view text(std::size_t i) const { return source_.token_text(i); }
  bool is_name(std::size_t i) const { return source_.is_name(i); }
  [[noreturn]] void fail(std::size_t i, std::string message, bool unsupported) const {
    throw problem_at(source_, i, std::move(message), unsupported);
  }

  void rewrite_function(const Function& f) {
    if (f.defined() && !f.is_global && !f.is_device && !f.is_constexpr && !f.in_class)
      fail(f.name_at,
           "`" + f.name + "` is a host function: only device code is compiled (__device__ is missing)",
           false);
    if (!f.defined()) {
      if (!f.is_global && !f.is_device && !f.is_constexpr && !f.in_class && f.body_open == 0 &&
          looks_like_prototype(f))
        fail(f.name_at,
             "`" + f.name + "` is a host function: only device code is compiled (__device__ is missing)",
             false);
    }
    if (!scan_.needs_context.contains(f.name)) return;
    if (f.name == "operator" || f.name == f.class_name)
      fail(f.name_at,
           "the CPU twin has no thread indices, barriers or shared memory in " +
               std::string(f.name == "operator" ? "an operator" : "a constructor"),
           true);
    const std::string context = context_parameter(f);
    const bool no_parameters = f.params_close == f.params_open + 1;
    if (f.params_close == f.params_open + 2 && text(f.params_open + 1) == "void") {
      edits_.remove(f.params_open + 1, f.params_open + 1, context);
    } else {
      edits_.insert_after(f.params_open, context + (no_parameters ? "" : ", "));
    }
    heads_.insert(f.name_at);
    if (f.defined()) {
      if (is_guarded(scan_, source_, f.name))
        for (const std::vector<Guard> guards = find_guards(tokens_, f); const Guard& g : guards) {
          const bool last = &g == &guards.back();
          edits_.insert_after(g.open, g.returns ? (last ? "WSTW_LAST_EXIT(" : "WSTW_EXIT(") : "WSTW_ENTRY(");
          edits_.insert_before(g.close, ")");
        }
      rewrite_lambdas(f.body_open, f.body_close);
      rewrite_shared(source_, scan_, f, edits_);
    }
  }

  // With the bound of `__launch_bounds__(128)`, where the kernel is declared in one place: declarations must
  // agree.
  std::string context_parameter(const Function& f) const {
    const auto same_name = [&](const Function& other) { return other.name == f.name; };
    if (!f.is_global || std::count_if(scan_.functions.begin(), scan_.functions.end(), same_name) != 1)
      return std::string(kContextParameter);
    for (std::size_t i = f.head; i < f.params_open; ++i) {
      if (text(i) != "__launch_bounds__" || text(i + 1) != "(") continue;
      const std::size_t close = matching(tokens_, i + 1);
      std::string bound;
      for (std::size_t k = i + 2; k < close && text(k) != ","; ++k) {
        const std::size_t last = text(k) == "(" ? matching(tokens_, k) : k;
        for (; k < last; ++k) bound += std::string(text(k)) + " ";
        bound += std::string(text(k)) + " ";
      }
      if (!bound.empty()) return "const wstw_bounded<(unsigned)(" + bound + ")>& wstw_";
    }
    return std::string(kContextParameter);
  }

  // `float f(int);` and not `float3 f(1, 2, 3);`
  bool looks_like_prototype(const Function& f) const {
    return text(f.head) != "extern" || text(f.head + 1) == "\"C\"" || is_name(f.params_open + 1) ||
           text(f.params_open + 1) == ")";
  }

  // Lambdas see the context by reference.
  void rewrite_lambdas(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      if (text(i) != "[" || (i > 0 && ((is_name(i - 1) && !is_keyword_of_expression(text(i - 1))) ||
                                       text(i - 1) == "]" || text(i - 1) == ")")))
        continue;
      const std::size_t close = matching(tokens_, i);
      const std::string_view next = text(close + 1);
      if (next != "(" && next != "{" && next != "__device__" && next != "mutable") continue;
      const std::string_view first = text(i + 1);
      const bool by_default = (first == "&" || first == "=") && (text(i + 2) == "]" || text(i + 2) == ",");
      if (!by_default) edits_.insert_after(i, close == i + 1 ? "&wstw_" : "&wstw_, ");
    }
  }

  // Calls of functions that need the context hand it on. `source` is the candidate's, or that of a macro.
  void rewrite_name(const CleanSource& source, std::size_t i, bool in_macro, SourceEdits& edits) {
    const std::vector<Token>& tokens = source.tokens;
    const std::string_view name = tokens[i].text;
    if (name == "reinterpret_cast" || name == "static_cast" || cast_names_.pointers.contains(name)) {
      rewrite_named_cast(source, cast_names_, i, edits);
      return;
    }
    if (name == "_Pragma") {
      // refuse_constructs() has seen to its form, but below `#if 0`.
      if (i + 2 >= tokens.size() || tokens[i + 2].kind != TokenKind::kString) return;
      const Token& unroll = tokens[i + 2];
      edits.insert_at_offset(unroll.offset + 1, "GCC ");
      if (unroll.text == "\"unroll\"") edits.insert_at_offset(unroll.offset + unroll.text.size() - 1, " 8");
      return;
    }
    if (!functions_.contains(name) || !scan_.needs_context.contains(name) ||
        (!in_macro && heads_.contains(i)))
      return;
    const std::string_view before = i > 0 ? tokens[i - 1].text : std::string_view();
    std::size_t open = i + 1;
    if (open < tokens.size() && tokens[open].text == "<") {
      const std::size_t close = matching_angle(tokens, open);
      if (close < tokens.size()) open = close + 1;
    }
    if (open >= tokens.size() || tokens[open].text != "(")
      return;  // a variable of that name, or its address: g++ will say
    // `float sum(0.f)` declares a variable.
    if (i > 0 && tokens[i - 1].kind == TokenKind::kIdentifier && !is_keyword_of_expression(before)) return;
    const bool empty = open + 1 < tokens.size() && tokens[open + 1].text == ")";
    edits.insert_at_offset(tokens[open].offset + 1, empty ? "wstw_" : "wstw_, ");
  }

  void rewrite_directive(std::size_t i) {
    const Token& t = tokens_[i];
    CleanSource inside;
    inside.text = std::string(t.text.substr(1)) + "\n";
    inside.tokens = tokens_of(inside.text, t.line);
    const std::vector<Token>& tokens = inside.tokens;
    if (tokens.empty()) return;
    if (tokens[0].text == "include") return edits_.replace(i, "");
    if (tokens[0].text == "pragma") {
      if (tokens.size() < 2 || tokens[1].text != "unroll") return edits_.replace(i, "");
      std::string count = "8";
      for (std::size_t k = 2; k < tokens.size(); ++k)
        if (tokens[k].kind == TokenKind::kNumber) count = std::string(tokens[k].text);
      if (tokens.size() > 2 && tokens[2].text != "(" && tokens[2].kind != TokenKind::kNumber) count = "8";
      return edits_.replace(i, "#pragma GCC unroll " + count);
    }
    if (tokens[0].text != "define") return;
    SourceEdits edits(inside);
    for (std::size_t k = 1; k < tokens.size(); ++k) {
      if (tokens[k].kind == TokenKind::kIdentifier) rewrite_name(inside, k, true, edits);
      if (tokens[k].text == "(") rewrite_cast(inside, cast_names_, k, edits);
    }
    rewrite_shifts(inside, templates_, edits);
    std::string text = edits.apply().text;
    text.pop_back();
    if (text != t.text.substr(1)) edits_.replace(i, "#" + text);
  }

  const CleanSource& source_;
  const std::vector<Token>& tokens_;
  const Scan& scan_;
  const CastNames cast_names_ = find_cast_names(source_);
  const std::set<std::string, std::less<>> templates_ = template_names(source_);
  std::set<std::string, std::less<>> functions_;
  std::set<std::size_t> heads_;  // names of functions where they are declared
  SourceEdits edits_;
};

}  // namespace

Rewritten rewrite(const CleanSource& source, const Scan& scan) { return Rewriter(source, scan).run(); }

int original_column(const Rewritten& rewritten, int line, int column) {
  const auto found = rewritten.insertions.find(line);
  if (found == rewritten.insertions.end()) return column;
  int shift = 0;
  for (const Insertion& i : found->second)
    if (i.column < column) shift += std::min(i.added, column - i.column);
  return std::max(1, column - shift);
}

}  // namespace warpsmith::toolchain
