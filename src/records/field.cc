#include "warpsmith/records/field.h"

#include <charconv>
#include <sstream>

#include "warpsmith/base/untrusted.h"

namespace warpsmith {

std::string shape_text(const ShapeSizes& shape) {
  std::string text;
  for (const auto& [name, size] : shape)
    text += (text.empty() ? "" : " ") + name + "=" + std::to_string(size);
  return text;
}

ShapeSizes shape_from_text(const std::string& text) {
  ShapeSizes shape;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t at = word.find('=');
    std::int64_t size = 0;
    const char* end = word.data() + word.size();
    if (at == std::string::npos || std::from_chars(word.data() + at + 1, end, size).ptr != end)
      throw Error("`" + word + "` in a shape is not NAME=SIZE");
    shape.emplace_back(word.substr(0, at), size);
  }
  return shape;
}

std::string words_text(const WordMap& words) { return words.empty() ? "" : Json(words).dump(); }

WordMap words_from_text(const std::string& text) {
  return text.empty() ? WordMap{} : parse_json(text, "a column of words").get<WordMap>();
}

namespace field_json {

// Pointers such as "/interval/0": elements of a list are put in their order.
void put(Json& object, const std::string& name, const FieldNotes& notes, Json&& value) {
  if (notes.json == nullptr)
    object[name] = std::move(value);
  else
    object[Json::json_pointer(notes.json)] = std::move(value);
}

const Json* find(const Json& object, const std::string& name, const FieldNotes& notes) {
  if (!object.is_object()) return nullptr;
  if (notes.json == nullptr) {
    const auto it = object.find(name);
    return it == object.end() ? nullptr : &*it;
  }
  const Json::json_pointer pointer(notes.json);
  return object.contains(pointer) ? &object.at(pointer) : nullptr;
}

void fail(const std::string& name, const Json::exception& why) {
  throw Error("`" + name + "`: " + in_words(why));
}

void fail_missing(const std::string& name) { throw Error("it has no `" + name + "`"); }

}  // namespace field_json

}  // namespace warpsmith
