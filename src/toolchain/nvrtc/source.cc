#include "source.h"

#include <algorithm>

#include "../common/directives.h"
#include "../common/source_path.h"

namespace warpsmith::toolchain {

namespace {

// Of others there is what device code has a use for: printf, memcpy, cudaGridDependencySynchronize.
constexpr std::string_view kOtherHeaders =
    "stdio.h cstdio stdlib.h cstdlib string.h cstring stdbool.h cuda_device_runtime_api.h";

bool is_gpu_header(std::string_view name) {
  return is_plain_path(name) && (is_device_header(name) || is_listed(kOtherHeaders, name));
}

// CUB's umbrella, and what is launched from the host: their functions are no device code.
bool is_for_hosts(std::string_view name) { return name == "cub/cub.cuh" || name.starts_with("cub/device/"); }

// `__has_include(<name>)` asks whether a file is there: of CUDA's headers alone, and spelt out.
void check_has_include(const CleanSource& source, const Token& at, std::string_view body, const Token& name) {
  std::string_view rest = body.substr(name.offset + name.text.size());
  const auto skip = [&](char wanted) {
    while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\t')) rest.remove_prefix(1);
    if (rest.empty() || rest.front() != wanted) return false;
    rest.remove_prefix(1);
    return true;
  };
  char close = '>';
  bool good = skip('(');
  if (good && !skip('<')) {
    close = '"';
    good = skip('"');
  }
  const std::size_t end = rest.find(close);
  good = good && end != std::string_view::npos && is_gpu_header(rest.substr(0, end));
  if (!good) refuse(source, at, "__has_include asks for CUDA's own headers alone", false);
}

// "ifdef" of `# ifdef X`, of directives that need not make sense.
std::string_view word_of(const Token& directive) {
  std::string_view text = directive.text.substr(directive.text[0] == '%' ? 2 : 1);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\v\f"), text.size()));
  return text.substr(0, text.find_first_not_of("abcdefghijklmnopqrstuvwxyz"));
}

// The first token behind the group that ends it, or of that group's end: that of `#else`, `#elif`, `#endif`.
std::size_t end_of_group(const std::vector<Token>& tokens, std::size_t begin) {
  int open = 0;
  for (std::size_t i = begin; i < tokens.size(); ++i) {
    if (tokens[i].kind != TokenKind::kDirective) continue;
    const std::string_view word = word_of(tokens[i]);
    if (open == 0 && (word.starts_with("el") || word == "endif")) return i;
    open += word == "if" || word == "ifdef" || word == "ifndef" ? 1 : word == "endif" ? -1 : 0;
  }
  return tokens.size();
}

void check_directive(const CleanSource& source, const Token& at, const HasHeader& has_header) {
  const Directive directive = read_directive(source, at);
  if (directive.word == "include") {
    const std::string_view name = included_header(source, at, directive);
    if (!is_gpu_header(name)) refuse(source, at, kOnlyCudaHeaders, false);
    if (is_for_hosts(name))
      refuse(source, at,
             "<" + std::string(name) +
                 "> brings host functions: include what the kernel uses, <cub/block/…>, <cub/warp/…>",
             false);
    if (!is_plain_header(name) && !has_header(name))
      refuse(source, at, "CUDA's headers here have no <" + std::string(name) + ">, or not what it includes",
             true);
    return;
  }
  if (directive.is_text()) return;
  const bool condition = directive.word == "if" || directive.word == "elif";
  for (const Token& t : tokens_of(directive.body, at.line)) {
    if (steers_includes(t.text))
      refuse(source, at, "macros of Thrust are no part of device code here", false);
    if (!asks_for_files(t.text)) continue;
    if (!condition || t.text != "__has_include")
      refuse(source, at, std::string(t.text) + " is no part of device code here", false);
    check_has_include(source, at, directive.body, t);
  }
}

}  // namespace

bool uses_cuda_library(const CleanSource& source) {
  return std::any_of(source.tokens.begin(), source.tokens.end(), [&](const Token& t) {
    if (t.kind != TokenKind::kDirective) return false;
    const Directive directive = read_directive(source, t);
    if (directive.word != "include") return false;
    const std::string_view name = included_header(source, t, directive);
    return name.starts_with("cuda/") || name.starts_with("cub/");
  });
}

void drop_dead_text(CleanSource* source) {
  std::vector<Token>& tokens = source->tokens;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind != TokenKind::kDirective) continue;
    const Directive directive = read_directive(*source, tokens[i]);
    if (directive.word != "if" || directive.body != "0") continue;
    const std::size_t end = end_of_group(tokens, i + 1);
    const std::size_t from = tokens[i].offset + tokens[i].text.size();
    const std::size_t to = end < tokens.size() ? tokens[end].offset : source->text.size();
    // In place: the other tokens point into it.
    std::replace_if(
        source->text.begin() + static_cast<std::ptrdiff_t>(from),
        source->text.begin() + static_cast<std::ptrdiff_t>(to), [](char c) { return c != '\n'; }, ' ');
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                 tokens.begin() + static_cast<std::ptrdiff_t>(end));
  }
}

void refuse_for_gpu(const CleanSource& source, const HasHeader& has_header) {
  refuse_hidden_text(source);
  for (const Token& t : source.tokens) {
    if (t.kind == TokenKind::kDirective) check_directive(source, t, has_header);
    if (t.kind != TokenKind::kIdentifier) continue;
    if (asks_for_files(t.text) || t.text == "import" || t.text == "__import")
      refuse(source, t, "`" + std::string(t.text) + "` is no part of device code here", false);
  }
}

}  // namespace warpsmith::toolchain
