// What the records say of a program, as lines for the prompt that asks its author for a better one. Only what
// was recorded: what is not known has no line. The words are those of compilers and programs that models
// wrote, and are made harmless here (quoted_line()).
#pragma once

#include <string>
#include <vector>

#include "warpsmith/records/measurement.h"

namespace warpsmith::method {

inline constexpr std::size_t kFailureLines = 8, kLongestFailureLine = 200;  // bytes

// What was wrong: the first errors of a compiler, or the first wrong element with its index, what it is and
// what was expected. Of a text with errors its lines that name one, of another its first lines.
std::vector<std::string> failure_lines(const Measurement& measurement);

// What a program that was timed took, and what is known to limit it: its time and its share of the roofline;
// registers, shared memory and spills of the kernel with most; tensor cores.
std::vector<std::string> speed_lines(const Measurement& measurement);

}  // namespace warpsmith::method
