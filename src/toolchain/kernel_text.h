// The tokens of a kernel that is to be split, and what can be asked of them. Numbers are positions in the
// list of tokens.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "scan.h"

namespace warpsmith::toolchain {

// Thrown in the files of the splitter (split.h): the kernel has a form that is left to fibers.
struct NotSplit {};

inline constexpr std::array<std::string_view, 4> kShuffleNames = {"__shfl_sync", "__shfl_up_sync",
                                                                  "__shfl_down_sync", "__shfl_xor_sync"};

struct KernelText {
  const std::vector<Token>& tokens;
  const Scan& scan;
  const Function& function;

  std::string_view text(std::size_t i) const {
    return i < tokens.size() ? tokens[i].text : std::string_view();
  }
  bool is_name(std::size_t i) const { return i < tokens.size() && tokens[i].kind == TokenKind::kIdentifier; }
  // Tokens `first` to `last` with spaces between.
  std::string words(std::size_t first, std::size_t last) const;

  static bool is_shuffle(std::string_view name);
  // Of the name of a number's type.
  static bool is_number_word(std::string_view word);
  // Whether the name at `i` makes a thread wait for others.
  bool waits(std::size_t i) const;
  bool any_waits(std::size_t first, std::size_t last) const;
  // The last token of the statement that begins at `i`.
  std::size_t end_of_statement(std::size_t i) const;
  // Throws NotSplit where the kernel has what no form can hold.
  void refuse() const;
};

}  // namespace warpsmith::toolchain
