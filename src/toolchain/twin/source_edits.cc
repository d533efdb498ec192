#include "source_edits.h"

#include <algorithm>

namespace warpsmith::toolchain {

void SourceEdits::insert_before(std::size_t i, std::string what) {
  edits_.push_back({source_.tokens[i].offset, 0, std::move(what), kBefore});
}

void SourceEdits::insert_after(std::size_t i, std::string what) {
  insert_at_offset(source_.tokens[i].offset + source_.tokens[i].text.size(), std::move(what));
}

void SourceEdits::insert_at_offset(std::size_t offset, std::string what) {
  edits_.push_back({offset, 0, std::move(what), kAfter});
}

void SourceEdits::remove(std::size_t first, std::size_t last, const std::string& instead) {
  const Token& end_token = source_.tokens[last];
  const std::size_t begin = source_.tokens[first].offset, end = end_token.offset + end_token.text.size();
  std::string blank = instead;
  for (std::size_t i = begin; i < end; ++i)
    if (source_.text[i] == '\n') blank += '\n';
  edits_.push_back({begin, end - begin, std::move(blank), kInstead});
}

void SourceEdits::replace(std::size_t i, std::string what) {
  edits_.push_back({source_.tokens[i].offset, source_.tokens[i].text.size(), std::move(what), kInstead});
}

SourceEdits::Result SourceEdits::apply() {
  std::stable_sort(edits_.begin(), edits_.end(), [](const Edit& a, const Edit& b) {
    return std::pair(a.offset, a.order) < std::pair(b.offset, b.order);
  });
  Result out;
  std::size_t at = 0;
  int line = 1;
  std::size_t line_start = 0;  // in out.text
  const auto emit = [&](std::string_view piece) {
    for (const char c : piece) {
      out.text += c;
      if (c == '\n') {
        ++line;
        line_start = out.text.size();
      }
    }
  };
  for (const Edit& e : edits_) {
    if (e.offset < at) continue;  // inside something that was replaced
    emit(std::string_view(source_.text).substr(at, e.offset - at));
    if (e.text.find('\n') == std::string::npos)
      out.insertions[line].push_back({static_cast<int>(out.text.size() - line_start) + 1,
                                      static_cast<int>(e.text.size()) - static_cast<int>(e.removed)});
    emit(e.text);
    at = e.offset + e.removed;
  }
  emit(std::string_view(source_.text).substr(at));
  return out;
}

}  // namespace warpsmith::toolchain
