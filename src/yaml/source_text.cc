#include "source_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "warpsmith/base/characters.h"

namespace warpsmith::yaml {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view without_mark(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

// What of a line stands before its comment. Right for lines without quotes.
std::string_view without_comment(std::string_view line) {
  for (std::size_t at = line.find('#'); at != std::string_view::npos; at = line.find('#', at + 1))
    if (at == 0 || is_blank(line[at - 1])) return line.substr(0, at);
  return line;
}

std::size_t end_without_blanks(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0 && is_blank(text[end - 1])) --end;
  return end;
}

}  // namespace

SourceText::SourceText(std::string_view text) : text_(without_mark(text)), line_starts_{0} {
  for (std::size_t at = text_.find('\n'); at != std::string_view::npos; at = text_.find('\n', at + 1))
    line_starts_.push_back(at + 1);
}

std::size_t SourceText::offset(int line, int column) const {
  const auto index = static_cast<std::size_t>(std::max(line, 0));
  if (index >= line_starts_.size()) return text_.size();
  return std::min(text_.size(), line_starts_[index] + static_cast<std::size_t>(std::max(column, 0)));
}

std::size_t SourceText::line_of(std::size_t offset) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  return static_cast<std::size_t>(after - line_starts_.begin()) - 1;
}

Place SourceText::place(const std::shared_ptr<const std::string>& file, std::size_t offset) const {
  const std::size_t line = line_of(offset);
  if (line != known_line_ || offset < known_offset_) {
    known_line_ = line;
    known_offset_ = line_starts_[line];
    known_column_ = 1;
  }
  for (; known_offset_ < offset; ++known_offset_)
    if ((static_cast<unsigned char>(text_[known_offset_]) & 0xC0) != 0x80) ++known_column_;
  return {file, static_cast<int>(line) + 1, known_column_};
}

// Between the `-` and `offset` there is nothing but blank lines and comments, and before it on its line there
// are only further `-`, `?` and `:`.
std::size_t SourceText::dash_before(std::size_t offset) const {
  for (std::size_t line = line_of(offset) + 1; line-- > 0;) {
    const std::size_t begin = line_starts_[line];
    const std::size_t end = line + 1 < line_starts_.size() ? line_starts_[line + 1] - 1 : text_.size();
    const auto before = without_comment(text_.substr(begin, std::min(end, offset) - begin));
    if (const std::size_t last = end_without_blanks(before); last > 0) return begin + last - 1;
  }
  return offset;
}

bool SourceText::writes_null(std::size_t offset) const {
  return offset < text_.size() && std::string_view("~nN&!").find(text_[offset]) != std::string_view::npos;
}

Invisible first_invisible(std::string_view text, std::size_t from) {
  for (std::size_t i = from; i < text.size();) {
    const Utf8Character c = utf8_character(text, i);
    if (c.code >= 0x80 && !invisible_name(c.code).empty()) return {i, c.bytes, c.code};
    i += c.bytes;
  }
  return {text.size(), 0, 0};
}

Diagnostic invisible_at(const Place& place, const Invisible& found) {
  return mistake_at(place,
                    fmt::format("an invisible character: U+{:04X} {}",
                                static_cast<std::uint32_t>(found.character), invisible_name(found.character)),
                    "delete it or type a plain space; within quotes it may stand");
}

Invisible first_invisible_in_code(std::string_view text) {
  for (Invisible found = first_invisible(text); found.bytes > 0;
       found = first_invisible(text, found.offset + found.bytes)) {
    const std::size_t newline =
        found.offset == 0 ? std::string_view::npos : text.rfind('\n', found.offset - 1);
    const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    const std::string_view line = text.substr(begin, found.offset - begin);
    const bool quoted = std::count(line.begin(), line.end(), '"') % 2 != 0 ||
                        std::count(line.begin(), line.end(), '\'') % 2 != 0;
    if (!quoted && without_comment(line).size() == line.size()) return found;
  }
  return {text.size(), 0, 0};
}

std::string as_seen(std::string_view text) {
  std::string out;
  std::size_t begin = 0;
  for (Invisible found = first_invisible(text); found.bytes > 0; found = first_invisible(text, begin)) {
    out += text.substr(begin, found.offset - begin);
    const std::string_view name = invisible_name(found.character);
    if (name.ends_with("space") && !name.starts_with("zero-width")) out += ' ';
    begin = found.offset + found.bytes;
  }
  out += text.substr(begin);
  return out;
}

}  // namespace warpsmith::yaml
