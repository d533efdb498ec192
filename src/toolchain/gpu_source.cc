#include "gpu_source.h"

#include <algorithm>
#include <array>

#include "directives.h"
#include "source_path.h"

namespace warpsmith::toolchain {

namespace {

// Not CUDA's own, and yet of use in device code: printf, memcpy.
constexpr std::array<std::string_view, 7> kCHeaders = {"stdio.h",  "cstdio",  "stdlib.h", "cstdlib",
                                                       "string.h", "cstring", "stdbool.h"};

bool is_gpu_header(std::string_view name) {
  return is_plain_path(name) && (is_device_header(name) || is_listed(kCHeaders, name));
}

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

bool asks_for_files(std::string_view name) {
  return name == "__has_include" || name == "__has_include_next" || name == "__has_embed" ||
         name == "_CCCL_HAS_INCLUDE";
}

// CUDA's own headers include what these macros name.
bool steers_includes(std::string_view name) { return name.find("THRUST") != std::string_view::npos; }

void check_directive(const CleanSource& source, const Token& at, const HasHeader& has_header) {
  const Directive directive = read_directive(source, at);
  if (directive.word == "include") {
    const std::string_view name = included_header(source, at, directive);
    if (!is_gpu_header(name)) refuse(source, at, kOnlyCudaHeaders, false);
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
