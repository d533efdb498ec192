#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "warpsmith/base/text.h"
#include "warpsmith/yaml/node.h"

namespace warpsmith::yaml {

namespace {

// A plain integer of YAML's core schema, decimal. `overflow`: it is one, but does not fit in 64 bits.
std::optional<std::int64_t> integer_of(const std::string& text, bool& overflow) {
  overflow = false;
  const char* begin = text.data();
  const char* end = begin + text.size();
  if (begin != end && *begin == '+') ++begin;
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (stop != end || begin == end) return std::nullopt;
  overflow = error == std::errc::result_out_of_range;
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::optional<double> number_of(const std::string& text) {
  const char* begin = text.data();
  const char* end = begin + text.size();
  if (begin != end && *begin == '+') ++begin;
  if (begin == end) return std::nullopt;
  for (const char* c = begin; c != end; ++c)
    if (std::string_view("0123456789.eE+-").find(*c) == std::string_view::npos)
      return std::nullopt;  // no inf, nan
  double value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (stop != end || error != std::errc() || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool is_boolean(const std::string& text) { return text == "true" || text == "false"; }

std::string shortened(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.size() <= 40) return text;
  std::size_t end = 37;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not inside a character
  text.resize(end);
  text += "...";
  return text;
}

std::nullopt_t wrong(const Node& node, std::string_view what, std::string_view wanted, std::string hint,
                     Diagnostics& diagnostics) {
  diagnostics.push_back(mistake_at(
      node.place(), fmt::format("{}: expected {}, found {}", what, wanted, describe(node)), std::move(hint)));
  return std::nullopt;
}

std::string show(double x) { return fmt::format("{}", x); }

}  // namespace

std::string describe(const Node& node) {
  switch (node.kind()) {
    case Kind::kNull:
      return "nothing";
    case Kind::kSequence:
      return "a list";
    case Kind::kMap:
      return "a map";
    case Kind::kScalar:
      break;
  }
  const std::string text = shortened(node.text());
  if (node.quoted()) return "the string \"" + text + "\"";
  bool overflow = false;
  if (integer_of(node.text(), overflow) || overflow) return "the integer " + text;
  if (number_of(node.text())) return "the number " + text;
  if (is_boolean(node.text())) return text;
  return "`" + text + "`";
}

bool is_map_file(const Node& root, std::string_view what, std::string_view schema, Diagnostics& diagnostics) {
  if (root.is_map()) return true;
  if (root.place().line > 0)  // else the file could not be read, which is told
    diagnostics.push_back(mistake_at(root.place(), "expected a map, found " + describe(root),
                                     fmt::format("a {} begins with schema: {}", what, schema)));
  return false;
}

Json to_json(const Node& node) {
  switch (node.kind()) {
    case Kind::kNull:
      return nullptr;
    case Kind::kSequence: {
      Json list = Json::array();
      for (const Node& item : node.items()) list.push_back(to_json(item));
      return list;
    }
    case Kind::kMap: {
      Json object = Json::object();
      for (const Entry& entry : node.entries()) object[entry.key] = to_json(entry.value);
      return object;
    }
    case Kind::kScalar:
      break;
  }
  if (node.quoted()) return node.text();
  bool overflow = false;
  if (const auto value = integer_of(node.text(), overflow)) return *value;
  if (const auto value = number_of(node.text())) return *value;
  if (is_boolean(node.text())) return node.text() == "true";
  return node.text();
}

std::optional<std::int64_t> read_integer(const Node& node, std::string_view what, Diagnostics& diagnostics) {
  bool overflow = false;
  if (node.is_scalar() && !node.quoted())
    if (const auto value = integer_of(node.text(), overflow)) return value;
  if (overflow) {
    diagnostics.push_back(
        mistake_at(node.place(), fmt::format("{}: {} does not fit in 64 bits", what, node.text())));
    return std::nullopt;
  }
  return wrong(node, what, "an integer", node.quoted() ? "take the quotes off" : "", diagnostics);
}

std::optional<double> read_number(const Node& node, std::string_view what, Diagnostics& diagnostics) {
  if (node.is_scalar() && !node.quoted())
    if (const auto value = number_of(node.text())) return value;
  return wrong(node, what, "a number", node.quoted() ? "take the quotes off" : "", diagnostics);
}

std::optional<double> read_share(const Node& node, std::string_view what, Diagnostics& diagnostics) {
  if (node.is_scalar()) {
    std::string text = node.text();
    const bool percent = !text.empty() && text.back() == '%';
    if (percent) text = trim(text.substr(0, text.size() - 1));
    if (percent || !node.quoted())
      if (const auto value = number_of(text)) return percent ? *value / 100 : *value;
  }
  return wrong(node, what, "a share", "such as 2% or 0.02", diagnostics);
}

std::optional<bool> read_boolean(const Node& node, std::string_view what, Diagnostics& diagnostics) {
  if (node.is_scalar() && !node.quoted() && is_boolean(node.text())) return node.text() == "true";
  return wrong(node, what, "true or false", node.quoted() ? "take the quotes off" : "", diagnostics);
}

std::optional<std::string> read_string(const Node& node, std::string_view what, Diagnostics& diagnostics) {
  if (node.is_scalar()) {
    bool overflow = false;
    if (node.quoted()) return node.text();
    if (!integer_of(node.text(), overflow) && !overflow && !number_of(node.text()) &&
        !is_boolean(node.text()))
      return node.text();
    return wrong(node, what, "a string", "put it in quotes: \"" + shortened(node.text()) + "\"", diagnostics);
  }
  return wrong(node, what, "a string", "", diagnostics);
}

std::optional<std::string> read_text(const Node& node, std::string_view what, Diagnostics& diagnostics) {
  if (node.is_scalar()) return node.text();
  return wrong(node, what, "one value", "", diagnostics);
}

std::optional<double> read_seconds(const Node& node, std::string_view what, Diagnostics& diagnostics) {
  if (node.is_scalar())
    if (const auto value = parse_duration(node.text())) return static_cast<double>(value->count()) / 1e3;
  const bool no_unit = node.is_scalar() && number_of(node.text());
  return wrong(node, what, "a duration",
               no_unit ? fmt::format("it has no unit: {0}s, {0}m or {0}h", node.text())
                       : "such as 90s, 15m, 2h30m, 1:30:00 or 1-12:00:00",
               diagnostics);
}

std::optional<std::uint64_t> read_bytes(const Node& node, std::string_view what, Diagnostics& diagnostics) {
  if (node.is_scalar())
    if (const auto value = parse_size(node.text())) return value;
  return wrong(node, what, "a size", "such as 512MiB or 4GiB", diagnostics);
}

std::optional<std::string> read_word(const Node& node, std::string_view what,
                                     std::span<const std::string> words, Diagnostics& diagnostics) {
  if (node.is_scalar() && std::find(words.begin(), words.end(), node.text()) != words.end())
    return node.text();
  if (node.is_scalar()) {
    diagnostics.push_back(mistake_at(node.place(),
                                     fmt::format("{}: `{}` is not known", what, shortened(node.text())),
                                     suggest(node.text(), words)));
    return std::nullopt;
  }
  return wrong(node, what, "a word", suggest("", words), diagnostics);
}

std::string suggest(std::string_view word, std::span<const std::string> known) {
  if (known.empty()) return {};
  if (!word.empty() && word.size() < 64) {
    // Of equally near words, one that was cut short or runs on is likelier than another word.
    std::vector<std::string> ordered(known.begin(), known.end());
    std::stable_partition(ordered.begin(), ordered.end(),
                          [&](const std::string& k) { return k.starts_with(word) || word.starts_with(k); });
    if (const auto near = nearest_word(word, ordered)) return "did you mean `" + *near + "`?";
  }
  std::string out = known.size() == 1 ? "expected " : "expected one of ";
  for (std::size_t i = 0; i < known.size() && i < 24; ++i) out += (i == 0 ? "" : ", ") + known[i];
  if (known.size() > 24) out += ", …";
  return out;
}

MapReader::MapReader(Node node, std::string what, Diagnostics& diagnostics)
    : node_(std::move(node)),
      what_(std::move(what)),
      diagnostics_(diagnostics),
      usable_(node_.is_map() || node_.is_null()) {
  if (!usable_)
    diagnostics_.push_back(mistake_at(node_.place(), what_ + ": expected a map, found " + describe(node_)));
}

std::optional<Node> MapReader::value(std::string_view key, const Expect& expect) {
  expected_.emplace_back(key);
  if (const Node* found = node_.find(key)) return *found;
  if (expect.required && usable_)
    diagnostics_.push_back(mistake_at(node_.place(), fmt::format("{}: key `{}` is missing", what_, key)));
  return std::nullopt;
}

namespace {

// `value`, if it lies within the bounds of `expect`.
template <typename T>
std::optional<T> bounded(std::optional<T> value, const Node& node, std::string_view what,
                         const Expect& expect, Diagnostics& diagnostics) {
  if (!value) return value;
  const auto x = static_cast<double>(*value);
  if (x >= expect.low && x <= expect.high) return value;
  std::string hint;
  if (std::isfinite(expect.low) && std::isfinite(expect.high))
    hint = show(expect.low) + " to " + show(expect.high);
  else if (std::isfinite(expect.low))
    hint = "at least " + show(expect.low);
  else
    hint = "at most " + show(expect.high);
  diagnostics.push_back(
      mistake_at(node.place(), fmt::format("{}: {} is out of range", what, node.text()), hint));
  return std::nullopt;
}

std::string ticked(std::string_view key) { return fmt::format("`{}`", key); }

}  // namespace

std::optional<std::int64_t> MapReader::integer(std::string_view key, const Expect& expect) {
  const auto node = value(key, expect);
  return node ? bounded(read_integer(*node, ticked(key), diagnostics_), *node, ticked(key), expect,
                        diagnostics_)
              : std::nullopt;
}
std::optional<double> MapReader::number(std::string_view key, const Expect& expect) {
  const auto node = value(key, expect);
  return node ? bounded(read_number(*node, ticked(key), diagnostics_), *node, ticked(key), expect,
                        diagnostics_)
              : std::nullopt;
}
std::optional<double> MapReader::share(std::string_view key, const Expect& expect) {
  const auto node = value(key, expect);
  return node
             ? bounded(read_share(*node, ticked(key), diagnostics_), *node, ticked(key), expect, diagnostics_)
             : std::nullopt;
}
std::optional<bool> MapReader::boolean(std::string_view key, const Expect& expect) {
  const auto node = value(key, expect);
  return node ? read_boolean(*node, ticked(key), diagnostics_) : std::nullopt;
}
std::optional<std::string> MapReader::string(std::string_view key, const Expect& expect) {
  const auto node = value(key, expect);
  return node ? read_string(*node, ticked(key), diagnostics_) : std::nullopt;
}
std::optional<std::string> MapReader::text(std::string_view key, const Expect& expect) {
  const auto node = value(key, expect);
  return node ? read_text(*node, ticked(key), diagnostics_) : std::nullopt;
}
std::optional<double> MapReader::seconds(std::string_view key, const Expect& expect) {
  const auto node = value(key, expect);
  return node ? bounded(read_seconds(*node, ticked(key), diagnostics_), *node, ticked(key), expect,
                        diagnostics_)
              : std::nullopt;
}
std::optional<std::uint64_t> MapReader::bytes(std::string_view key, const Expect& expect) {
  const auto node = value(key, expect);
  return node
             ? bounded(read_bytes(*node, ticked(key), diagnostics_), *node, ticked(key), expect, diagnostics_)
             : std::nullopt;
}
std::optional<std::string> MapReader::word(std::string_view key, std::span<const std::string> words,
                                           const Expect& expect) {
  const auto node = value(key, expect);
  return node ? read_word(*node, ticked(key), words, diagnostics_) : std::nullopt;
}

std::vector<Node> MapReader::sequence(std::string_view key, const Expect& expect) {
  const auto node = value(key, expect);
  if (!node) return {};
  if (!node->is_sequence()) wrong(*node, ticked(key), "a list", "", diagnostics_);
  return node->items();
}

std::vector<std::string> MapReader::strings(std::string_view key, const Expect& expect) {
  std::vector<std::string> out;
  for (const Node& item : sequence(key, expect))
    if (auto text = read_string(item, ticked(key), diagnostics_)) out.push_back(std::move(*text));
  return out;
}

std::vector<std::string> MapReader::texts(std::string_view key, const Expect& expect) {
  std::vector<std::string> out;
  for (const Node& item : sequence(key, expect))
    if (auto text = read_text(item, ticked(key), diagnostics_)) out.push_back(std::move(*text));
  return out;
}

std::vector<Entry> MapReader::map(std::string_view key, const Expect& expect) {
  const auto node = value(key, expect);
  if (!node || node->is_null()) return {};
  if (!node->is_map()) wrong(*node, ticked(key), "a map", "", diagnostics_);
  return node->entries();
}

void MapReader::mistake(std::string_view key, std::string message, std::string hint) {
  const Node* found = node_.find(key);
  diagnostics_.push_back(
      mistake_at(found != nullptr ? found->place() : node_.place(), std::move(message), std::move(hint)));
}

void MapReader::finish() {
  for (const Entry& entry : node_.entries())
    if (std::find(expected_.begin(), expected_.end(), entry.key) == expected_.end())
      diagnostics_.push_back(mistake_at(entry.place,
                                        fmt::format("{}: key `{}` is not known", what_, shortened(entry.key)),
                                        suggest(entry.key, expected_)));
}

}  // namespace warpsmith::yaml
