#include "directives.h"

#include <algorithm>
#include <cctype>

namespace warpsmith::toolchain {

namespace {

constexpr std::string_view kHeaders =
    "cuda_runtime.h cuda.h cuda_fp16.h cuda_bf16.h cooperative_groups.h cooperative_groups/reduce.h "
    "math.h stdint.h float.h limits.h stddef.h assert.h math_constants.h device_launch_parameters.h "
    "cuda_runtime_api.h vector_types.h cfloat climits cstdint cmath cstddef cassert device_functions.h "
    "vector_functions.h stdio.h cstdio stdlib.h cstdlib string.h cstring stdbool.h";

// Further ones of CUDA's. Folders end with a slash.
constexpr std::string_view kDeviceHeaders =
    "cooperative_groups/ cub/ cuda/ nv/ mma.h cuda_fp4.h cuda_fp6.h cuda_fp8.h cuda_pipeline.h "
    "cuda_pipeline_primitives.h cuda_awbarrier.h cuda_awbarrier_primitives.h cuComplex.h "
    "curand_kernel.h math_functions.h builtin_types.h";

std::string_view trim_view(std::string_view s) {
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front()))) s.remove_prefix(1);
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back()))) s.remove_suffix(1);
  return s;
}

void refuse_raw_strings(const CleanSource& source, const Token& in, const std::vector<Token>& tokens) {
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
    if (tokens[i].kind == TokenKind::kIdentifier && tokens[i].text.back() == 'R' &&
        tokens[i + 1].kind == TokenKind::kString &&
        tokens[i + 1].offset == tokens[i].offset + tokens[i].text.size())
      refuse(source, in.text.empty() ? tokens[i] : in, "raw strings are not read", false);
}

// In older C++ `??=` is `#`, and `??/` at the end of a line joins it with the next, also inside strings.
void refuse_trigraphs(const CleanSource& source) {
  for (std::size_t at = source.text.find("??"); at != std::string::npos; at = source.text.find("??", at + 1))
    if (source.text[at + 2] == '=' || source.text[at + 2] == '/')
      throw SourceProblem{
          1 + static_cast<int>(std::count(source.text.begin(),
                                          source.text.begin() + static_cast<std::ptrdiff_t>(at), '\n')),
          column_at(source.text, at), "trigraphs are not read", false};
}

}  // namespace

void refuse(const CleanSource& source, const Token& token, std::string message, bool unsupported) {
  throw SourceProblem{token.line, column_at(source.text, token.offset), std::move(message), unsupported};
}

bool is_plain_header(std::string_view name) { return is_listed(kHeaders, name); }

bool is_device_header(std::string_view name) {
  return is_plain_header(name) || is_listed(kDeviceHeaders, name);
}

bool asks_for_files(std::string_view name) {
  return is_one_of(name, {"__has_include", "__has_include_next", "__has_embed", "_CCCL_HAS_INCLUDE"});
}

bool steers_includes(std::string_view name) { return name.find("THRUST") != std::string_view::npos; }

Directive read_directive(const CleanSource& source, const Token& at) {
  if (at.text[0] == '%') refuse(source, at, "digraphs are not read", false);
  const std::string_view rest = trim_view(at.text.substr(1));
  std::size_t n = 0;
  while (n < rest.size() && (std::isalpha(static_cast<unsigned char>(rest[n])) || rest[n] == '_')) ++n;
  const Directive directive{rest.substr(0, n), trim_view(rest.substr(n))};
  if (!is_one_of(directive.word, {"", "define", "undef", "if", "ifdef", "ifndef", "else", "elif", "endif",
                                  "error", "pragma", "warning", "include"}))
    refuse(source, at, "#" + std::string(directive.word) + " is no part of device code here", false);
  return directive;
}

std::string_view included_header(const CleanSource& source, const Token& at, const Directive& include) {
  const std::string_view body = include.body;
  const char close = body.empty() ? ' ' : body[0] == '<' ? '>' : body[0] == '"' ? '"' : ' ';
  const std::size_t end = close == ' ' ? std::string_view::npos : body.find(close, 1);
  if (end == std::string_view::npos || !trim_view(body.substr(end + 1)).empty())
    refuse(source, at, "#include wants <name> or \"name\"", false);
  return body.substr(1, end - 1);
}

void refuse_hidden_text(const CleanSource& source) {
  const std::vector<Token>& tokens = source.tokens;
  refuse_trigraphs(source);
  refuse_raw_strings(source, {}, tokens);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Token& t = tokens[i];
    if (t.kind == TokenKind::kDirective) refuse_raw_strings(source, t, tokens_of(t.text.substr(1), t.line));
    if (t.kind != TokenKind::kPunctuation) continue;
    const bool joined = i + 1 < tokens.size() && tokens[i + 1].offset == t.offset + 1;
    const std::string_view next = joined ? tokens[i + 1].text : std::string_view();
    if (t.text == "##" || t.text == "#" || t.text == "\\" || t.text == "@" || t.text == "`")
      refuse(source, t, "stray `" + std::string(t.text) + "`", false);
    if ((t.text == "<" && (next == "%" || next == ":")) || (t.text == "%" && (next == ":" || next == ">")))
      refuse(source, t, "digraphs are not read", false);
  }
}

}  // namespace warpsmith::toolchain
