// CUDA C++ source as tokens, with the place of each. Comments and line splices are gone; the number of lines
// is unchanged.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace warpsmith::toolchain {

enum class TokenKind {
  kIdentifier,
  kNumber,
  kString,
  kPunctuation,
  kDirective /* "#…" to the end of its line */
};

struct Token {
  TokenKind kind = TokenKind::kPunctuation;
  std::string_view text;  // into CleanSource::text
  std::size_t offset = 0;
  int line = 1;  // from 1
};

// A problem in the source that ends the compilation.
struct SourceProblem {
  int line = 1, column = 1;
  std::string message;
  bool unsupported = false;  // else a compile error
};

// Not copyable: tokens point into `text`.
struct CleanSource {
  std::string text;
  std::vector<Token> tokens;
  std::string_view token_text(std::size_t i) const {
    return i < tokens.size() ? tokens[i].text : std::string_view();
  }
  bool is_name(std::size_t i) const { return i < tokens.size() && tokens[i].kind == TokenKind::kIdentifier; }
  CleanSource() = default;
  CleanSource(const CleanSource&) = delete;
  CleanSource& operator=(const CleanSource&) = delete;
};

// A source is no larger than this, and its brackets are nested no deeper: what reads tokens may look from one
// bracket for the other, again and again.
inline constexpr std::size_t kMostSourceBytes = 1u << 20;
inline constexpr std::size_t kDeepestNesting = 256;
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
inline constexpr const char* kSourceTooLarge = "the source is larger than 1 MiB";

// Reads `source`; a byte order mark in front is passed over. Throws SourceProblem, also where a compiler
// could see comments, strings or numbers elsewhere than we do.
void read_tokens(std::string_view source, CleanSource* out);
// Tokens of a piece of clean text, as of a directive.
std::vector<Token> tokens_of(std::string_view text, int first_line);
bool is_one_of(std::string_view text, std::initializer_list<std::string_view> list);
// `list`: words with one blank between; those that end with a slash stand for all that begins with them.
bool is_listed(std::string_view list, std::string_view name);
// Words that stand before a `(` and do not make a call of it.
bool is_keyword_of_expression(std::string_view word);
// Column (from 1) of an offset in clean text.
int column_at(std::string_view text, std::size_t offset);
// A problem at a token; at the last one where there is none of that number.
SourceProblem problem_at(const CleanSource& source, std::size_t token, std::string message, bool unsupported);

}  // namespace warpsmith::toolchain
