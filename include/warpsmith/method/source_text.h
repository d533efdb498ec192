// Sources as tokens: enough of C++ to rename identifiers, change constants and compare programs by structure,
// and of Python to compare.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace warpsmith::method {

enum class TokenKind { kIdentifier, kNumber, kString, kPunctuation, kSpace, kComment };

struct Token {
  TokenKind kind = TokenKind::kSpace;
  std::string text;
  bool plan =
      false;  // inside a `// plan:` comment, which is tokenised like code; the marker itself is a kComment
};

// The tokens' texts put together are the source. Never fails: an unfinished string or comment ends with its
// line or file.
std::vector<Token> tokenise(std::string_view source);
std::string join(const std::vector<Token>& tokens);

// Identifiers that the code (not the plan) declares: kernels, parameters, locals, template parameters; with
// those of the plan's `let`, `temp` and `for`. By the look of the tokens, without a parser: it may miss some,
// and a name that is also a struct's member is left out.
struct DeclaredNames {
  std::set<std::string> code, plan;
};
DeclaredNames declared_names(const std::vector<Token>& tokens);

enum class Language { kCuda, kPython };
Language language_of(std::string_view path);  // kPython: it ends in ".py"

// The source with comments dropped (plan comments stay) and white space evened out: equal for sources that
// differ in layout only.
std::string layout_normal_form(std::string_view source, Language language = Language::kCuda);

// The same with identifiers and constants renamed in the order of their first appearance. CUDA's and C++'s
// own words, members and functions called but not declared here stay: fmaxf is not fminf. Equal for programs
// that differ in names, constants and layout only.
std::string normal_form(std::string_view source, Language language = Language::kCuda);

}  // namespace warpsmith::method
