#include "substitute.h"

#include <fmt/format.h>

#include <deque>
#include <optional>
#include <set>

#include "warpsmith/base/text.h"

namespace warpsmith::workflow {

namespace {

using yaml::Entry;
using yaml::mistake_at;
using yaml::Node;

std::vector<std::string> names_of(const std::map<std::string, Node>& values) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  return names;
}

// The same value, placed where it is used: a mistake in it is a mistake there.
Node moved_to(const Node& node, const yaml::Place& place) {
  return node.is_scalar() || node.is_null() ? Node::scalar(place, node.text(), node.quoted()) : node;
}

// Takes what `node` holds off the budget; false where it is not enough. Looks at no more than there was.
bool pay(const Node& node, ReferenceBudget& budget) {
  const auto take = [&](std::size_t bytes) {
    if (budget.values == 0 || bytes > budget.bytes) return false;
    --budget.values;
    budget.bytes -= bytes;
    return true;
  };
  if (!take(node.text().size())) return false;
  for (const Node& item : node.items())
    if (!pay(item, budget)) return false;
  for (const Entry& entry : node.entries())
    if (!take(entry.key.size()) || !pay(entry.value, budget)) return false;
  return true;
}

class Substitution {
 public:
  Substitution(const References& references, Diagnostics& mistakes)
      : references_(references), mistakes_(mistakes) {}

  Node apply(const Node& node) {
    switch (node.kind()) {
      case yaml::Kind::kNull:
        return node;
      case yaml::Kind::kScalar:
        return scalar(node);
      case yaml::Kind::kSequence:
        return sequence(node);
      case yaml::Kind::kMap:
        return map(node);
    }
    return node;
  }

 private:
  Node sequence(const Node& node) {
    std::vector<Node> items;
    bool changed = false;
    for (const Node& item : node.items()) {
      const Node& made = items.emplace_back(apply(item));
      changed = changed || !made.same(item);
    }
    return changed ? Node::sequence(node.place(), std::move(items)) : node;
  }

  Node map(const Node& node) {
    std::vector<Entry> entries;
    bool changed = false;
    for (const Entry& entry : node.entries()) {
      entries.push_back({entry.key, entry.place, apply(entry.value)});
      changed = changed || !entries.back().value.same(entry.value);
    }
    return changed ? Node::map(node.place(), std::move(entries)) : node;
  }

  Node scalar(const Node& node) {
    const std::string& text = node.text();
    if (text.find("${") == std::string::npos) return node;
    std::string out;
    std::size_t at = 0;
    for (;;) {
      const auto dollar = text.find("${", at);
      out += text.substr(at, dollar - at);
      if (dollar == std::string::npos) break;
      if (dollar > 0 && text[dollar - 1] == '$') {  // $${: one $ is in `out` already
        out += '{';
        at = dollar + 2;
        continue;
      }
      const auto close = text.find('}', dollar);
      if (close == std::string::npos) {
        mistakes_.push_back(mistake_at(place_in(node, dollar), "`${` is not closed",
                                       "add the `}`, or write $${ for the text ${"));
        return Node();
      }
      const std::string name = trim(std::string_view(text).substr(dollar + 2, close - dollar - 2));
      const auto value = look_up(name, place_in(node, dollar));
      if (!value) return Node();
      if (dollar == 0 && close + 1 == text.size()) return moved_to(*value, node.place());
      if (!value->is_scalar()) {
        mistakes_.push_back(mistake_at(
            place_in(node, dollar),
            fmt::format("`${{{}}}` is {}, which cannot stand within text", name, yaml::describe(*value))));
        return Node();
      }
      out += value->text();
      at = close + 1;
    }
    return out == text ? node : Node::scalar(node.place(), std::move(out), node.quoted());
  }

  std::optional<Node> look_up(const std::string& name, const yaml::Place& place) {
    const auto dot = name.find('.');
    const std::string space = name.substr(0, dot);
    const std::string rest = dot == std::string::npos ? "" : name.substr(dot + 1);
    if (space == "params") return look_up_in(references_.params, "parameter", "is not defined", rest, place);
    if (space == "matrix" && references_.matrix != nullptr)
      return look_up_in(references_.matrix, "axis", "is not in this stage's matrix", rest, place);
    if (space == "matrix") {
      mistakes_.push_back(
          mistake_at(place, fmt::format("`${{{}}}` can only stand in a stage that has a matrix", name)));
    } else if (space == "env") {
      mistakes_.push_back(mistake_at(place, fmt::format("`${{{}}}`: the environment is not read", name),
                                     "make it a parameter and give it by --set params.NAME=VALUE"));
    } else {
      mistakes_.push_back(mistake_at(place, fmt::format("`${{{}}}` refers to nothing", name),
                                     "expected params.NAME or matrix.AXIS"));
    }
    return std::nullopt;
  }

  std::optional<Node> look_up_in(const std::map<std::string, Node>* values, const char* what,
                                 const char* trouble, const std::string& name, const yaml::Place& place) {
    if (values != nullptr)
      if (const auto it = values->find(name); it != values->end()) return paid(it->second, place);
    const auto known = values == nullptr ? std::vector<std::string>{} : names_of(*values);
    mistakes_.push_back(
        mistake_at(place, fmt::format("{} `{}` {}", what, name, trouble), yaml::suggest(name, known)));
    return std::nullopt;
  }

  std::optional<Node> paid(const Node& value, const yaml::Place& place) {
    ReferenceBudget& budget = *references_.budget;
    if (budget.exceeded) return std::nullopt;
    if (pay(value, budget)) return value;
    budget.exceeded = mistake_at(place,
                                 fmt::format("references bring more than {} values or {} MiB",
                                             ReferenceBudget().values, ReferenceBudget().bytes >> 20),
                                 "counted as often as they are used");
    return std::nullopt;
  }

  static yaml::Place place_in(const Node& node, std::size_t offset) {
    yaml::Place place = node.place();
    if (place.line > 0 && node.text().find('\n') == std::string::npos)
      place.column += static_cast<int>(offset) + (node.quoted() ? 1 : 0);
    return place;
  }

  const References& references_;
  Diagnostics& mistakes_;
};

// Names of the parameters that `node` refers to.
void collect_references(const Node& node, std::set<std::string>& names) {
  for (const Node& item : node.items()) collect_references(item, names);
  for (const Entry& entry : node.entries()) collect_references(entry.value, names);
  const std::string& text = node.text();
  for (auto at = text.find("${params."); at != std::string::npos; at = text.find("${params.", at + 1)) {
    const auto close = text.find('}', at);
    if (close != std::string::npos) names.insert(trim(std::string_view(text).substr(at + 9, close - at - 9)));
  }
}

}  // namespace

Node substitute(const Node& node, const References& references, Diagnostics& mistakes) {
  return Substitution(references, mistakes).apply(node);
}

std::map<std::string, Node> resolve_params(const Node* params, ReferenceBudget& budget,
                                           Diagnostics& mistakes) {
  std::map<std::string, Node> resolved;
  if (params == nullptr || params->is_null()) return resolved;
  if (!params->is_map()) {
    mistakes.push_back(
        mistake_at(params->place(), "`params`: expected a map, found " + yaml::describe(*params)));
    return resolved;
  }
  std::map<std::string, const Entry*> known;
  for (const Entry& entry : params->entries()) known.emplace(entry.key, &entry);
  std::map<std::string, std::size_t> waits_for;              // how many others
  std::map<std::string, std::vector<const Entry*>> awaited;  // who waits for it
  std::deque<const Entry*> ready;
  for (const Entry& entry : params->entries()) {
    if (!is_identifier(entry.key))
      mistakes.push_back(mistake_at(entry.place, fmt::format("parameter `{}` has no proper name", entry.key),
                                    "letters, digits, _ and -"));
    std::set<std::string> names;
    collect_references(entry.value, names);
    std::erase_if(names, [&](const std::string& name) { return !known.contains(name); });  // reported on use
    waits_for[entry.key] = names.size();
    for (const std::string& name : names) awaited[name].push_back(&entry);
    if (names.empty()) ready.push_back(&entry);
  }
  for (; !ready.empty(); ready.pop_front()) {
    const Entry& entry = *ready.front();
    resolved[entry.key] = substitute(entry.value, {.params = &resolved, .budget = &budget}, mistakes);
    for (const Entry* waiting : awaited[entry.key])
      if (--waits_for[waiting->key] == 0) ready.push_back(waiting);
  }
  for (const Entry& entry : params->entries()) {  // what is left refers to itself
    if (waits_for[entry.key] == 0) continue;
    mistakes.push_back(mistake_at(entry.place, fmt::format("parameter `{}` refers to itself", entry.key)));
    resolved[entry.key] = Node();
  }
  return resolved;
}

namespace {

struct Override {
  std::vector<std::string> path;
  Node value;
  yaml::Place place;
};

Node with_override(const Node& node, const Override& change, std::size_t depth, Diagnostics& mistakes) {
  if (depth == change.path.size()) return change.value;
  const std::string& step = change.path[depth];
  const bool in_params = depth == 1 && change.path[0] == "params";
  if (node.is_sequence()) {
    std::vector<Node> items = node.items();
    std::vector<std::string> known;
    for (Node& item : items) {
      const Node* name = item.find("name");
      if (name == nullptr) continue;
      known.push_back(name->text());
      if (name->text() != step) continue;
      item = with_override(item, change, depth + 1, mistakes);
      return Node::sequence(node.place(), std::move(items));
    }
    mistakes.push_back(mistake_at(change.place, fmt::format("nothing is named `{}` there", step),
                                  yaml::suggest(step, known)));
    return node;
  }
  if (!node.is_map() && !node.is_null()) {
    mistakes.push_back(
        mistake_at(change.place, fmt::format("there is no `{}` in {}", step, yaml::describe(node))));
    return node;
  }
  std::vector<Entry> entries = node.entries();
  std::vector<std::string> known;
  for (Entry& entry : entries) {
    known.push_back(entry.key);
    if (entry.key != step) continue;
    entry.value = with_override(entry.value, change, depth + 1, mistakes);
    return Node::map(node.place(), std::move(entries));
  }
  if (in_params) {
    mistakes.push_back(mistake_at(change.place, fmt::format("parameter `{}` is not defined", step),
                                  yaml::suggest(step, known)));
    return node;
  }
  // A key of the format that the file leaves at its default; a key that is none is reported by the reader.
  entries.push_back({step, change.place, with_override(Node(), change, depth + 1, mistakes)});
  return Node::map(node.is_null() ? change.place : node.place(), std::move(entries));
}

}  // namespace

Node apply_overrides(Node root, const std::vector<std::string>& overrides, Diagnostics& mistakes) {
  for (const std::string& text : overrides) {
    const auto equals = text.find('=');
    Override change;
    change.place.file = std::make_shared<const std::string>("--set " + text);
    if (equals == std::string::npos || equals == 0) {
      mistakes.push_back(mistake_at(change.place, "expected PATH=VALUE", "such as params.steps=100"));
      continue;
    }
    change.path = split(std::string_view(text).substr(0, equals), '.');
    Diagnostics in_value;
    change.value = yaml::load_text(std::string_view(text).substr(equals + 1), *change.place.file, in_value);
    for (Diagnostic& mistake : in_value) {
      mistake.line = mistake.column = 0;
      mistakes.push_back(std::move(mistake));
    }
    if (!in_value.empty()) continue;
    change.value = change.value.without_lines();
    root = with_override(root, change, 0, mistakes);
  }
  return root;
}

}  // namespace warpsmith::workflow
