// A regular expression over UTF-8, as the files of tokenizers have it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace warpsmith::tokenizer {

// `\s` and `\S` of a pattern written out: PCRE2's has U+180E, which is no white space any more. Throws Error
// for `\S` in a class.
std::string with_white_space_written_out(std::string_view regex);

class Pattern {
 public:
  // Throws Error with PCRE2's message. `literal`: a text, and no expression.
  explicit Pattern(const std::string& regex, bool literal = false);
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  // Cuts `text`, which must be valid UTF-8: each match is a piece, and what lies between two matches is one.
  // Throws Error where matching it takes too much.
  void split(std::string_view text, std::vector<std::string_view>& pieces) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace warpsmith::tokenizer
