// Preprocessor directives of a candidate, and text that would let it have directives that nobody looked at.
#pragma once

#include <string>
#include <string_view>

#include "tokens.h"

namespace warpsmith::toolchain {

inline constexpr const char* kOnlyCudaHeaders = "only CUDA's own headers can be included";

struct Directive {
  std::string_view word, body;  // "include", "<mma.h>"
  bool is_text() const { return word == "pragma" || word == "error" || word == "warning"; }
};
// Throws SourceProblem on those that device code has no use for: embed, line, include_next, …
Directive read_directive(const CleanSource& source, const Token& at);

// The header of an `include`, which must be spelt out. Throws SourceProblem.
std::string_view included_header(const CleanSource& source, const Token& at, const Directive& include);

// Headers whose content is always there, on the twin as on a GPU: cuda_runtime.h, stdint.h, …
bool is_plain_header(std::string_view name);

// Those, and CUDA's further headers that device code can use, on a GPU alone: mma.h, cuda/…, cub/…
bool is_device_header(std::string_view name);

// Macros and operators that ask whether a file is there.
bool asks_for_files(std::string_view name);
// Macros by which CUDA's own headers choose what they include.
bool steers_includes(std::string_view name);

// Raw strings, digraphs, trigraphs, stray characters: they can make a compiler's text end elsewhere than
// ours. Throws SourceProblem.
void refuse_hidden_text(const CleanSource& source);

[[noreturn]] void refuse(const CleanSource& source, const Token& token, std::string message,
                         bool unsupported);

}  // namespace warpsmith::toolchain
