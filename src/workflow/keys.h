// The keys of a map of the workflow file as a table: one table reads them, writes them for the hash, and
// makes the JSON Schema.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/yaml/node.h"

namespace warpsmith::workflow {

// Units of the limits in the tables: bytes and seconds.
inline constexpr double kKiB = 1024, kMiB = kKiB * 1024, kTiB = kMiB * kMiB, kDay = 86400;

enum class Form {
  kInteger,
  kNumber,
  kShare,
  kBoolean,
  kString,
  kWord,
  kSeconds,
  kBytes,
  kStrings,
  kIntegers
};

// What may stand at a key, without the struct that it fills.
struct KeyRule {
  const char* name;
  Form form;
  const char* meaning;
  double low = 0, high = std::numeric_limits<double>::infinity();
  bool above_low = false;  // `low` itself is not allowed
  std::vector<std::string> words =
      {};  // kWord, kStrings: those that may stand there; kStrings: empty, any may
  bool hashed = true;
  bool young = false;  // runs are older than the key: with its default it enters no hash
};

using KeyValue = std::variant<std::int64_t, std::uint64_t, double, bool, std::string,
                              std::vector<std::string>, std::vector<int>>;

// A member that is spelt in words in the file.
template <typename T>
struct Spelt {
  std::function<void(T&, const std::string&)> set;
  std::function<std::string(const T&)> get;
};

template <typename T>
struct Key {
  KeyRule rule;
  std::variant<int T::*, std::uint64_t T::*, double T::*, bool T::*, std::string T::*,
               std::vector<std::string> T::*, std::vector<int> T::*, Spelt<T>>
      member;
};

template <typename T>
using Table = std::vector<Key<T>>;

// The value at a key, checked against its rule; nothing and a mistake where it does not fit.
std::optional<KeyValue> read_value(const KeyRule& rule, const yaml::Node& node, Diagnostics& mistakes);

// The rule as a JSON Schema, `standard` being the default.
Json rule_schema(const KeyRule& rule, const Json& standard);

template <typename T>
void assign(const Key<T>& key, T& object, KeyValue&& value) {
  std::visit(
      [&](const auto& member) {
        using M = std::decay_t<decltype(member)>;
        if constexpr (std::is_same_v<M, Spelt<T>>) {
          member.set(object, std::get<std::string>(value));
        } else {
          using V = std::decay_t<decltype(object.*member)>;
          const auto* integer = std::get_if<std::int64_t>(&value);
          if constexpr (std::is_same_v<V, int>)
            object.*member = static_cast<int>(std::get<std::int64_t>(value));
          else if constexpr (std::is_same_v<V, std::uint64_t>)  // of bytes, or an integer from 0 on
            object.*member =
                integer != nullptr ? static_cast<std::uint64_t>(*integer) : std::get<std::uint64_t>(value);
          else
            object.*member = std::get<V>(std::move(value));
        }
      },
      key.member);
}

// Reads the keys of `table` that are in the map; others are `map`'s to report. What the file does not say
// stays as it is.
template <typename T>
void read_keys(const Table<T>& table, yaml::MapReader& map, T& object, Diagnostics& mistakes) {
  for (const Key<T>& key : table) {
    const auto node = map.value(key.rule.name);
    if (!node) continue;
    if (auto value = read_value(key.rule, *node, mistakes)) assign(key, object, std::move(*value));
  }
}

// A map that holds the keys of `table` and no others.
template <typename T>
void read_map(const Table<T>& table, const yaml::Node& node, const std::string& what, T& object,
              Diagnostics& mistakes) {
  yaml::MapReader map(node, what, mistakes);
  read_keys(table, map, object, mistakes);
  map.finish();
}

template <typename T>
Json value_json(const Key<T>& key, const T& object) {
  return std::visit(
      [&](const auto& member) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(member)>, Spelt<T>>)
          return member.get(object);
        else
          return object.*member;
      },
      key.member);
}

// The values that enter the hash, by key.
template <typename T>
Json hashed_json(const Table<T>& table, const T& object) {
  Json json = Json::object();
  for (const Key<T>& key : table) {
    if (!key.rule.hashed) continue;
    Json value = value_json(key, object);
    if (key.rule.young && value == value_json(key, T())) continue;
    json[key.rule.name] = std::move(value);
  }
  return json;
}

// JSON Schema of the keys: name -> schema.
template <typename T>
Json properties_schema(const Table<T>& table, const T& standard) {
  Json properties = Json::object();
  for (const Key<T>& key : table)
    properties[key.rule.name] = rule_schema(key.rule, value_json(key, standard));
  return properties;
}

}  // namespace warpsmith::workflow
