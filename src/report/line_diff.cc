#include "line_diff.h"

#include <algorithm>
#include <cstdint>

namespace warpsmith::report {

namespace {

constexpr std::size_t kMostLines = 2000;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

std::vector<DiffLine> line_diff(std::string_view before, std::string_view after) {
  const std::vector<std::string_view> a = lines_of(before), b = lines_of(after);
  if (a.size() > kMostLines || b.size() > kMostLines) return {};
  // Longest common subsequence of a's lines from i on and b's from j on.
  const std::size_t width = b.size() + 1;
  std::vector<std::uint16_t> common((a.size() + 1) * width);
  for (std::size_t i = a.size(); i-- > 0;)
    for (std::size_t j = b.size(); j-- > 0;)
      common[i * width + j] = a[i] == b[j] ? static_cast<std::uint16_t>(common[(i + 1) * width + j + 1] + 1)
                                           : std::max(common[(i + 1) * width + j], common[i * width + j + 1]);
  std::vector<DiffLine> out;
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      out.push_back({' ', a[i++]});
      ++j;
    } else if (j == b.size() || (i < a.size() && common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      out.push_back({'-', a[i++]});
    } else {
      out.push_back({'+', b[j++]});
    }
  }
  return out;
}

}  // namespace warpsmith::report
