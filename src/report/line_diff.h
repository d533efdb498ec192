// Two texts line by line.
#pragma once

#include <string_view>
#include <vector>

namespace warpsmith::report {

struct DiffLine {
  char mark = ' ';        // '-': of the first text alone; '+': of the second alone; ' ': of both
  std::string_view text;  // points into the texts
};
// As few marked lines as there can be. Empty where the texts have so many lines that it would take long.
std::vector<DiffLine> line_diff(std::string_view before, std::string_view after);

}  // namespace warpsmith::report
