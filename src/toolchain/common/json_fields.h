// Structs as JSON and back. Their fields stand in one place: a function for_each_field(value, visit) beside
// the struct calls visit("name", value.name) for each.
#pragma once

#include <string_view>
#include <type_traits>

#include "warpsmith/base/json.h"

namespace warpsmith::toolchain {

template <typename T>
Json struct_to_json(T value) {
  Json json = Json::object();
  for_each_field(value, [&](const char* name, auto& field) { json[name] = field; });
  return json;
}

// Throws Error, with `what` in it, where a field is missing or has another type.
template <typename T>
T struct_from_json(const Json& json, std::string_view what) {
  T value;
  for_each_field(value, [&](const char* name, auto& field) {
    field = json_at<std::remove_reference_t<decltype(field)>>(json, name, what);
  });
  return value;
}

}  // namespace warpsmith::toolchain
