#include "keys.h"

#include <fmt/format.h>

#include <cmath>

namespace warpsmith::workflow {

namespace {

// A bound as it would be written in the file.
std::string show_bound(const KeyRule& rule, double bound) {
  if (rule.form == Form::kShare) return fmt::format("{}%", bound * 100);
  if (rule.form == Form::kSeconds) {
    if (bound >= 86400 && std::fmod(bound, 86400) == 0) return fmt::format("{}d", bound / 86400);
    if (bound >= 3600 && std::fmod(bound, 3600) == 0) return fmt::format("{}h", bound / 3600);
    return bound < 1 ? fmt::format("{}ms", bound * 1000) : fmt::format("{}s", bound);
  }
  if (rule.form == Form::kBytes) {
    static constexpr const char* kUnits[] = {"", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    while (bound >= 1024 && std::fmod(bound, 1024) == 0 && unit < 4) bound /= 1024, ++unit;
    return fmt::format("{}{}", bound, kUnits[unit]);
  }
  return fmt::format("{}", bound);
}

std::string range_hint(const KeyRule& rule) {
  const std::string low = (rule.above_low ? "more than " : "") + show_bound(rule, rule.low);
  if (std::isfinite(rule.high))
    return rule.above_low ? low + ", at most " + show_bound(rule, rule.high)
                          : low + " to " + show_bound(rule, rule.high);
  return rule.above_low ? low : "at least " + low;
}

// Whether `x` lies within the rule's range; a mistake where not.
bool in_range(const KeyRule& rule, double x, const yaml::Node& node, Diagnostics& mistakes) {
  if ((rule.above_low ? x > rule.low : x >= rule.low) && x <= rule.high) return true;
  mistakes.push_back(yaml::mistake_at(
      node.place(), fmt::format("`{}`: {} is out of range", rule.name, node.text()), range_hint(rule)));
  return false;
}

template <typename T>
std::optional<KeyValue> in_range(const KeyRule& rule, std::optional<T> x, const yaml::Node& node,
                                 Diagnostics& mistakes) {
  if (!x || !in_range(rule, static_cast<double>(*x), node, mistakes)) return std::nullopt;
  return KeyValue(*x);
}

std::optional<std::int64_t> read_int(const KeyRule& rule, const yaml::Node& node, std::string_view what,
                                     Diagnostics& mistakes) {
  const auto value = yaml::read_integer(node, what, mistakes);
  if (!value || !in_range(rule, static_cast<double>(*value), node, mistakes)) return std::nullopt;
  if (*value > std::numeric_limits<int>::max()) {  // every integer of the format is stored in an int
    mistakes.push_back(yaml::mistake_at(node.place(), fmt::format("{}: {} is out of range", what, *value),
                                        range_hint(rule)));
    return std::nullopt;
  }
  return value;
}

std::optional<KeyValue> read_list(const KeyRule& rule, const yaml::Node& node, std::string_view what,
                                  Diagnostics& mistakes) {
  std::vector<std::string> strings;
  std::vector<int> integers;
  if (!rule.words.empty() && node.is_scalar()) {  // one word, as a list of it
    if (auto word = yaml::read_word(node, what, rule.words, mistakes)) return KeyValue(std::vector{*word});
    return std::nullopt;
  }
  if (!node.is_sequence()) {
    mistakes.push_back(yaml::mistake_at(
        node.place(), fmt::format("{}: expected a list, found {}", what, yaml::describe(node))));
    return std::nullopt;
  }
  bool good = true;
  for (const yaml::Node& item : node.items()) {
    if (rule.form == Form::kStrings) {
      if (auto text = rule.words.empty() ? yaml::read_text(item, what, mistakes)
                                         : yaml::read_word(item, what, rule.words, mistakes))
        strings.push_back(std::move(*text));
      else
        good = false;
    } else if (const auto x = read_int(rule, item, what, mistakes)) {
      integers.push_back(static_cast<int>(*x));
    } else {
      good = false;
    }
  }
  if (!good) return std::nullopt;
  return rule.form == Form::kStrings ? KeyValue(std::move(strings)) : KeyValue(std::move(integers));
}

}  // namespace

std::optional<KeyValue> read_value(const KeyRule& rule, const yaml::Node& node, Diagnostics& mistakes) {
  const std::string what = fmt::format("`{}`", rule.name);
  switch (rule.form) {
    case Form::kInteger:
      if (const auto value = read_int(rule, node, what, mistakes)) return KeyValue(*value);
      return std::nullopt;
    case Form::kNumber:
      return in_range(rule, yaml::read_number(node, what, mistakes), node, mistakes);
    case Form::kShare:
      return in_range(rule, yaml::read_share(node, what, mistakes), node, mistakes);
    case Form::kSeconds:
      return in_range(rule, yaml::read_seconds(node, what, mistakes), node, mistakes);
    case Form::kBytes:
      return in_range(rule, yaml::read_bytes(node, what, mistakes), node, mistakes);
    case Form::kBoolean:
      if (const auto value = yaml::read_boolean(node, what, mistakes)) return KeyValue(*value);
      return std::nullopt;
    case Form::kString:
      if (auto value = yaml::read_string(node, what, mistakes)) return KeyValue(std::move(*value));
      return std::nullopt;
    case Form::kWord:
      if (auto value = yaml::read_word(node, what, rule.words, mistakes)) return KeyValue(std::move(*value));
      return std::nullopt;
    case Form::kStrings:
    case Form::kIntegers:
      return read_list(rule, node, what, mistakes);
  }
  return std::nullopt;
}

Json rule_schema(const KeyRule& rule, const Json& standard) {
  const auto bounds = [&](Json schema) {
    schema[rule.above_low ? "exclusiveMinimum" : "minimum"] = rule.low;
    if (std::isfinite(rule.high)) schema["maximum"] = rule.high;
    return schema;
  };
  Json value;
  switch (rule.form) {
    case Form::kInteger:
      value = bounds({{"type", "integer"}});
      break;
    case Form::kNumber:
      value = bounds({{"type", "number"}});
      break;
    case Form::kShare:
      value = {{"anyOf", {bounds({{"type", "number"}}), {{"type", "string"}, {"pattern", "^[0-9.]+ *%$"}}}}};
      break;
    case Form::kBoolean:
      value = {{"type", "boolean"}};
      break;
    case Form::kString:
      value = {{"type", "string"}};
      break;
    case Form::kWord:
      value = {{"enum", rule.words}};
      break;
    case Form::kSeconds:
      value = {
          {"type", "string"},
          {"pattern", "^([0-9.]+(ms|s|min|m|h|d))+$|^[0-9]+(:[0-9]+){1,2}$|^[0-9]+-[0-9]+(:[0-9]+){0,2}$"}};
      break;
    case Form::kBytes:
      value = {{"anyOf",
                {{{"type", "integer"}, {"minimum", 0}},
                 {{"type", "string"}, {"pattern", "^[0-9.]+ *([kKmMgGtT]i?)?[bB]?$"}}}}};
      break;
    case Form::kStrings:
      value = {{"type", "array"}, {"items", {{"type", {"string", "number", "boolean"}}}}};
      if (!rule.words.empty()) value["items"] = {{"enum", rule.words}};
      break;
    case Form::kIntegers:
      value = {{"type", "array"}, {"items", bounds({{"type", "integer"}})}};
      break;
  }
  Json schema = {{"description", rule.meaning}, {"anyOf", {value, {{"$ref", "#/$defs/reference"}}}}};
  if (rule.form == Form::kStrings && !rule.words.empty()) schema["anyOf"].push_back({{"enum", rule.words}});
  if (rule.form == Form::kSeconds && standard.is_number())
    schema["default"] = fmt::format("{}s", standard.get<double>());
  else if (!standard.is_null() && !(rule.form == Form::kWord && standard == ""))
    schema["default"] = standard;
  return schema;
}

}  // namespace warpsmith::workflow
