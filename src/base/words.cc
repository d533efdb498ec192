#include "warpsmith/base/words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace warpsmith {

namespace {

bool is_alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

std::string next_word(std::string_view text, std::size_t at) {
  while (at < text.size() && !is_alnum(text[at])) ++at;
  std::string word;
  for (; at < text.size() && is_alnum(text[at]); ++at)
    word += static_cast<char>(std::tolower(static_cast<unsigned char>(text[at])));
  return word;
}

// Whether `text` holds `words` from `at` on and ends a word with it, looking at letters and digits only.
bool holds_at(std::string_view text, std::size_t at, std::string_view words) {
  for (const char c : words) {
    if (!is_alnum(c)) continue;
    while (at < text.size() && !is_alnum(text[at])) ++at;
    if (at == text.size() || !same_letter(text[at], c)) return false;
    ++at;
  }
  if (at < text.size() && is_alnum(text[at])) return false;
  static constexpr std::array<std::string_view, 5> kOfAnotherModel = {"ti", "super", "d", "ada", "laptop"};
  return std::find(kOfAnotherModel.begin(), kOfAnotherModel.end(), next_word(text, at)) ==
         kOfAnotherModel.end();
}

}  // namespace

bool holds_words(std::string_view text, std::string_view words) {
  for (std::size_t at = 0; at < text.size(); ++at)
    if (is_alnum(text[at]) && (at == 0 || !is_alnum(text[at - 1])) && holds_at(text, at, words)) return true;
  return false;
}

}  // namespace warpsmith
