#include "warpsmith/yaml/node.h"

#include <fmt/format.h>

#include <algorithm>

#include "warpsmith/base/characters.h"

namespace warpsmith::yaml {

struct Node::Data {
  Kind kind = Kind::kNull;
  Place place;
  std::string text;
  bool quoted = false;
  std::vector<Node> items;
  std::vector<Entry> entries;
};

namespace {

// Text of a file may stand in a message. It stays one line, no byte of it steers a terminal, and what cannot
// be seen is written out: \u200b.
std::string on_one_line(std::string text) {
  const auto is_plain = [](unsigned char c) { return c >= 0x20 && c < 0x7F; };
  if (std::all_of(text.begin(), text.end(), is_plain)) return text;
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Character c = utf8_character(text, i);
    if (c.code == '\n')
      out += "\\n";
    else if (c.code == '\t')
      out += "\\t";
    else if (c.code < 0x80 && !is_plain(static_cast<unsigned char>(c.code)))
      out += fmt::format("\\x{:02x}", static_cast<std::uint32_t>(c.code));
    else if (is_control_character(c.code) || !invisible_name(c.code).empty())
      out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c.code));
    else
      out += text.substr(i, c.bytes);
    i += c.bytes;
  }
  return out;
}

}  // namespace

Diagnostic mistake_at(const Place& place, std::string message, std::string hint) {
  return {place.file ? *place.file : std::string(), place.line, place.column, on_one_line(std::move(message)),
          on_one_line(std::move(hint))};
}

Node::Node() {
  static const auto nowhere = std::make_shared<const Data>();
  data_ = nowhere;
}

Node Node::scalar(Place place, std::string text, bool quoted) {
  auto data = std::make_shared<Data>();
  const bool null = !quoted && (text.empty() || text == "~" || text == "null");
  data->kind = null ? Kind::kNull : Kind::kScalar;
  data->place = std::move(place);
  if (!null) data->text = std::move(text);
  data->quoted = quoted;
  return Node(std::move(data));
}

Node Node::sequence(Place place, std::vector<Node> items) {
  auto data = std::make_shared<Data>();
  data->kind = Kind::kSequence;
  data->place = std::move(place);
  data->items = std::move(items);
  return Node(std::move(data));
}

Node Node::map(Place place, std::vector<Entry> entries) {
  auto data = std::make_shared<Data>();
  data->kind = Kind::kMap;
  data->place = std::move(place);
  data->entries = std::move(entries);
  return Node(std::move(data));
}

Kind Node::kind() const { return data_->kind; }
const Place& Node::place() const { return data_->place; }
const std::string& Node::text() const { return data_->text; }
bool Node::quoted() const { return data_->quoted; }
const std::vector<Node>& Node::items() const { return data_->items; }
const std::vector<Entry>& Node::entries() const { return data_->entries; }

Node Node::without_lines() const {
  auto data = std::make_shared<Data>(*data_);
  data->place.line = data->place.column = 0;
  for (Node& item : data->items) item = item.without_lines();
  for (Entry& entry : data->entries) {
    entry.place.line = entry.place.column = 0;
    entry.value = entry.value.without_lines();
  }
  return Node(std::move(data));
}

const Node* Node::find(std::string_view key) const {
  for (const Entry& entry : data_->entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

}  // namespace warpsmith::yaml
