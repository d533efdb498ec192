// What prompts say of known hacks: which cases are quoted, and in which words. A case was written by a
// program that cheats, or by whoever shares a database: it is text that nobody has read, and is made harmless
// here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/records/hack.h"

namespace warpsmith::method {

inline constexpr std::size_t kLongestQuotedReason = 200;  // bytes
inline constexpr std::size_t kLongestQuotedSource = 800;

// One line of printable ASCII of at most `most` bytes: control characters and runs of white space become one
// blank, what is no ASCII `?`; " ..." ends what was cut.
std::string plain_line(std::string_view text, std::size_t most);

// The same for a prompt: no backquote (which would open or close a fence), and a blank wherever a mark of a
// chat template could stand ("<|im_end|>", "</s>", "<start_of_turn>", "[INST]").
std::string quoted_line(std::string_view text, std::size_t most);

// Lines of a program's code for a prompt, each as quoted_line() has it but for its indent: without comments
// (plans stay), with texts in quotes emptied, without empty lines, of at most `most` bytes in all; a last
// line "..." where something was left out.
std::vector<std::string> quoted_code(std::string_view source, std::size_t most);

// The same for whoever is to judge the code: comments, texts in quotes and empty lines stay.
std::vector<std::string> shown_code(std::string_view source, std::size_t most);

struct HackQuote {
  std::string kind;
  bool same_task = false;
  std::string reason;             // quoted_line()
  std::vector<std::string> code;  // quoted_code(); none of a score that did not come again, which may have
                                  // been the machine's noise and no fault of the program
};

// At most `most` of `cases` (oldest first), one a kind: kinds with a case of `task` first, then those with
// most cases, then those with the newest one. Of a kind the newest case of the task is quoted, else the
// newest.
std::vector<HackQuote> choose_hacks(const std::vector<HackCase>& cases, const std::string& task, int most);

}  // namespace warpsmith::method
