#include <algorithm>
#include <map>

#include "../common/directives.h"
#include "../common/source_path.h"
#include "scan.h"

namespace warpsmith::toolchain {

namespace {

struct Refusal {
  std::string_view construct;
  bool unsupported;
};

const std::map<std::string_view, Refusal>& refused_names() {
  static const std::map<std::string_view, Refusal> names = {
      {"asm", {"inline PTX (asm)", true}},
      {"__asm", {"inline PTX (asm)", true}},
      {"__asm__", {"inline PTX (asm)", true}},
      {"wmma", {"wmma", true}},
      {"nvcuda", {"wmma", true}},
      {"__pipeline_memcpy_async", {"cp.async", true}},
      {"__pipeline_commit", {"cp.async", true}},
      {"__pipeline_wait_prior", {"cp.async", true}},
      {"memcpy_async", {"cp.async", true}},
      {"coalesced_threads", {"coalesced_threads", true}},
      {"labeled_partition", {"labeled_partition", true}},
      {"binary_partition", {"binary_partition", true}},
      {"this_cluster", {"clusters", true}},
      {"this_multi_grid", {"multi-device launches", true}},
      {"cluster_group", {"clusters", true}},
      {"__cluster_dims__", {"clusters", true}},
      {"clusterIdx", {"clusters", true}},
      {"texture", {"textures", true}},
      {"cudaTextureObject_t", {"textures", true}},
      {"cudaSurfaceObject_t", {"surfaces", true}},
      {"CUtensorMap", {"tensor maps", true}},
      {"clock", {"clock()", true}},
      {"clock64", {"clock64()", true}},
      {"globaltimer", {"%globaltimer", true}},
      {"malloc", {"malloc in device code", true}},
      {"free", {"free in device code", true}},
      {"new", {"new in device code", true}},
      {"delete", {"delete in device code", true}},
      {"alloca", {"alloca", true}},
      {"co_await", {"coroutines", false}},
      {"co_yield", {"coroutines", false}},
      {"co_return", {"coroutines", false}},
      {"thread_local", {"thread_local", false}},
      {"__thread", {"__thread", false}},
      {"register", {"register", false}},
      {"try", {"exceptions", false}},
      {"catch", {"exceptions", false}},
      {"throw", {"exceptions", false}},
      {"typeid", {"typeid", false}},
      {"dynamic_cast", {"dynamic_cast", false}},
      {"__has_include", {"__has_include", false}},
      {"__has_include_next", {"__has_include_next", false}},
      {"__has_embed", {"__has_embed", false}},
      {"__FILE__", {"__FILE__", false}},
      {"__BASE_FILE__", {"__BASE_FILE__", false}},
      {"__DATE__", {"__DATE__", false}},
      {"__TIME__", {"__TIME__", false}},
      {"__TIMESTAMP__", {"__TIMESTAMP__", false}},
      {"constructor", {"constructors", false}},
      {"__constructor__", {"constructors", false}},
      {"destructor", {"destructors", false}},
      {"__destructor__", {"destructors", false}},
      {"ifunc", {"ifunc", false}},
      {"__ifunc__", {"ifunc", false}},
      {"import", {"modules", false}},
      {"typeof", {"typeof", false}},
      {"__typeof", {"typeof", false}},
      {"__typeof__", {"typeof", false}},
      {"__auto_type", {"__auto_type", false}},
      {"__label__", {"__label__", false}},
      {"_Complex", {"_Complex", false}},
      {"__complex__", {"_Complex", false}},
  };
  return names;
}

// Compiler built-ins that NVRTC has too.
constexpr std::string_view kBuiltins =
    "__builtin_assume __builtin_assume_aligned __builtin_expect __builtin_unreachable __builtin_align__ "
    "__builtin_nanf";

bool starts_with_any(std::string_view name, std::initializer_list<std::string_view> starts) {
  for (const std::string_view s : starts)
    if (name.substr(0, s.size()) == s) return true;
  return false;
}

void refuse_name(const CleanSource& source, const Token& at, std::string_view name, std::string_view next) {
  const auto found = refused_names().find(name);
  if (found != refused_names().end()) {
    const Refusal& r = found->second;
    refuse(source, at,
           r.unsupported ? "the CPU twin has no " + std::string(r.construct)
                         : std::string(r.construct) + " is no part of device code here",
           r.unsupported);
  }
  if (name == "cuda" && next == "::") refuse(source, at, "the CPU twin has no cuda:: library", true);
  if (starts_with_any(name, {"tex1D", "tex2D", "tex3D", "surf1D", "surf2D", "surf3D"}))
    refuse(source, at, "the CPU twin has no textures", true);
  if (starts_with_any(name,
                      {"cudaLaunch", "cudaMalloc", "cudaMemcpy", "cudaMemset", "cudaStream", "cudaGraph"}))
    refuse(source, at, "the CPU twin has no " + std::string(name) + " (device runtime)", true);
  if (starts_with_any(name, {"__nv_cvta", "__cvta_", "__nvvm_"}))
    refuse(source, at, "the CPU twin has no " + std::string(name), true);
  if (starts_with_any(name, {"wstw_", "WSTW_"}))
    refuse(source, at, "names that begin with wstw_ belong to the twin", false);
  if (starts_with_any(name, {"__builtin_", "__sync_", "__atomic_"}) && !is_listed(kBuiltins, name))
    refuse(source, at, "`" + std::string(name) + "` is no part of device code here", false);
}

// `_Pragma("unroll 4")` alone: others can do what a directive can.
bool is_unroll_operator(const std::vector<Token>& tokens, std::size_t i) {
  if (i + 3 >= tokens.size() || tokens[i + 1].text != "(" || tokens[i + 3].text != ")") return false;
  std::string_view text = tokens[i + 2].text;
  constexpr std::string_view kUnroll = "\"unroll";
  if (!text.starts_with(kUnroll) || !text.ends_with('"')) return false;
  text.remove_prefix(kUnroll.size());
  text.remove_suffix(1);
  return text.empty() || (text.size() > 1 && text[0] == ' ' &&
                          text.find_first_not_of("0123456789", 1) == std::string_view::npos);
}

// `((aligned(16), unused))` at the token behind __attribute__.
bool is_harmless_attribute(const std::vector<Token>& tokens, std::size_t open) {
  const auto text = [&](std::size_t i) { return i < tokens.size() ? tokens[i].text : std::string_view(); };
  if (text(open) != "(" || text(open + 1) != "(") return false;
  for (std::size_t i = open + 2;;) {
    const std::string_view name = text(i);
    if (!is_one_of(name, {"aligned", "__aligned__", "packed", "__packed__", "unused", "__unused__"}))
      return false;
    ++i;
    if (text(i) == "(") i = matching(tokens, i) + 1;
    if (text(i) == ")") return text(i + 1) == ")";
    if (text(i) != ",") return false;
    ++i;
  }
}

// Extensions of g++ that NVRTC does not take, found by the tokens around `i`. Empty: it is none.
std::string_view extension_at(const std::vector<Token>& tokens, std::size_t i) {
  const auto text = [&](std::size_t k) { return k < tokens.size() ? tokens[k].text : std::string_view(); };
  const bool begins_operand = i == 0 ||
                              (tokens[i - 1].kind == TokenKind::kPunctuation && text(i - 1) != ")" &&
                               text(i - 1) != "]" && text(i - 1) != ">") ||
                              is_keyword_of_expression(text(i - 1));
  if (text(i) == "(" && text(i + 1) == "{" && begins_operand) return "an expression of statements, ({…})";
  if (text(i) == "?" && text(i + 1) == ":") return "?: without an operand between";
  if (text(i) == "goto" && text(i + 1) == "*") return "a computed goto";
  if (text(i) != "case") return "";
  for (std::size_t k = i + 1; k < tokens.size() && text(k) != ":" && text(k) != ";"; ++k)
    if (text(k) == "...") return "a range of cases";
  return "";
}

// What is refused of a token with those behind it, in code and in macros.
void refuse_forms(const CleanSource& source, const Token& at, const std::vector<Token>& tokens,
                  std::size_t i) {
  const Token& t = tokens[i];
  const auto text = [&](std::size_t k) { return k < tokens.size() ? tokens[k].text : std::string_view(); };
  if (t.kind == TokenKind::kIdentifier) {
    refuse_name(source, at, t.text, text(i + 1));
    if (t.text == "_Pragma" && !is_unroll_operator(tokens, i))
      refuse(source, at, "of _Pragma, only \"unroll\" is read", false);
    if ((t.text == "__attribute__" || t.text == "__attribute") && !is_harmless_attribute(tokens, i + 1))
      refuse(source, at, "of attributes, only aligned, packed and unused are read", false);
  }
  if (const std::string_view extension = extension_at(tokens, i); !extension.empty())
    refuse(source, at, std::string(extension) + " is no part of device code here", false);
  if (t.text == "[" && text(i + 1) == "[" &&
      (text(i + 2) == "gnu" || text(i + 2) == "__gnu__" || text(i + 2) == "using"))
    refuse(source, at, "compiler-specific attributes are not read", false);
}

// A macro in the place of `__shared__`: declarations are found without macros.
void refuse_shared_macro(const CleanSource& source, const Token& at, const std::vector<Token>& tokens) {
  if (tokens.empty() ||
      std::none_of(tokens.begin() + 1, tokens.end(), [](const Token& t) { return t.text == "__shared__"; }))
    return;
  for (const Token& t : source.tokens)
    if (t.kind == TokenKind::kIdentifier && t.text == tokens[0].text)
      refuse(source, at, "the CPU twin has no __shared__ in a macro", true);
}

void refuse_directive(const CleanSource& source, const Token& at) {
  const Directive directive = read_directive(source, at);
  if (directive.word == "include") {
    const std::string_view name = included_header(source, at, directive);
    if (is_plain_header(name)) return;
    if (name == "mma.h") refuse(source, at, "the CPU twin has no wmma", true);
    if ((is_plain_path(name) && is_device_header(name)) ||
        starts_with_any(name, {"cutlass/", "cute/", "thrust/"}))
      refuse(source, at, "the CPU twin has no <" + std::string(name) + ">", true);
    refuse(source, at, kOnlyCudaHeaders, false);
  }
  if (directive.is_text()) return;
  const std::vector<Token> tokens = tokens_of(directive.body, at.line);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].text == "##") refuse(source, at, "the CPU twin does not paste tokens (##)", true);
    if (tokens[i].text == "gnu" || tokens[i].text == "__gnu__")
      refuse(source, at, "compiler-specific attributes are not read", false);
    refuse_forms(source, at, tokens, i);
  }
  if (directive.word == "define") refuse_shared_macro(source, at, tokens);
}

// Text between `#if 0` and what ends it is nothing. Says for a token whether it lies there; to be asked of
// all tokens in order.
class Skipped {
 public:
  bool contains(const CleanSource& source, const Token& t) {
    if (t.kind != TokenKind::kDirective) return depth_ > 0;
    if (depth_ == 0) {
      const std::vector<Token> tokens = tokens_of(t.text.substr(1), t.line);
      if (t.text[0] == '#' && tokens.size() == 2 && tokens[0].text == "if" && tokens[1].text == "0")
        depth_ = 1;
      return false;
    }
    const std::string_view word = conditional(source, t);
    if (word == "if" || word == "ifdef" || word == "ifndef") ++depth_;
    if (word == "endif") --depth_;
    if ((word == "else" || word == "elif") && depth_ == 1) depth_ = 0;
    return depth_ > 0;
  }

 private:
  // The word of a directive that a compiler still reads there. Where it could read another: refused.
  static std::string_view conditional(const CleanSource& source, const Token& t) {
    if (t.text[0] != '#') refuse(source, t, "digraphs are not read", false);
    const std::string_view all = t.text.substr(1);
    const std::vector<Token> tokens = tokens_of(all, t.line);
    if (tokens.empty()) return {};
    const std::string_view word = tokens[0].text;
    const std::size_t end = tokens[0].offset + word.size();
    const bool clear =
        end >= all.size() || all[end] == ' ' || all[end] == '\t' || all[end] == '(' || all[end] == '!';
    if (word.starts_with("elifdef") || word.starts_with("elifndef") ||
        ((word.starts_with("if") || word.starts_with("el") || word.starts_with("endif")) && !clear))
      refuse(source, t, "#" + std::string(word) + " is no part of device code here", false);
    return word;
  }

  int depth_ = 0;
};

}  // namespace

void refuse_constructs(const CleanSource& source) {
  refuse_hidden_text(source);
  Skipped skipped;
  const std::vector<Token>& tokens = source.tokens;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Token& t = tokens[i];
    if (skipped.contains(source, t)) continue;
    if (t.kind == TokenKind::kDirective) {
      refuse_directive(source, t);
      continue;
    }
    refuse_forms(source, t, tokens, i);
    if (t.text == "<<<") refuse(source, t, "the CPU twin has no launches from the device (<<<…>>>)", true);
  }
}

}  // namespace warpsmith::toolchain
