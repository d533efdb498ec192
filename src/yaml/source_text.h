// The text of a YAML file, as its reader looks back at it: where a byte stands, and characters that nobody
// sees.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "warpsmith/yaml/node.h"

namespace warpsmith::yaml {

class SourceText {
 public:
  // `text` is UTF-8 and outlives this object. A byte order mark at its beginning does not count.
  explicit SourceText(std::string_view text);

  std::string_view text() const { return text_; }
  std::size_t lines() const { return line_starts_.size(); }
  // Of a line and a column that count from 0, in bytes, as yaml-cpp counts them.
  std::size_t offset(int line, int column) const;
  // Line and column from 1, in characters, as editors count them. Fast where places are asked for in order.
  Place place(const std::shared_ptr<const std::string>& file, std::size_t offset) const;

  // The `-` of an empty element of a block list, which ends somewhere before `offset`; `offset` if there is
  // none.
  std::size_t dash_before(std::size_t offset) const;
  // Whether the element at `offset` is written out: ~, null, or an anchor or a tag of nothing.
  bool writes_null(std::size_t offset) const;

 private:
  std::size_t line_of(std::size_t offset) const;

  std::string_view text_;
  std::vector<std::size_t> line_starts_;
  mutable std::size_t known_offset_ = 0, known_line_ = 0;  // the place asked for last
  mutable int known_column_ = 1;
};

// A character that cannot be seen; `offset` is the text's size where there is none.
struct Invisible {
  std::size_t offset = 0, bytes = 0;
  char32_t character = 0;
};
Invisible first_invisible(std::string_view text, std::size_t from = 0);
// "an invisible character: U+00A0 no-break space", with what to do.
Diagnostic invisible_at(const Place& place, const Invisible& found);
// The first one outside of comments and quotes, as far as single lines tell them.
Invisible first_invisible_in_code(std::string_view text);
// The text as its writer saw it: spaces of all kinds are plain ones, other invisible characters are gone.
std::string as_seen(std::string_view text);

}  // namespace warpsmith::yaml
