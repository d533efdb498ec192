// YAML as nodes that know their place, so that every mistake can be told as file:line:column. The only place
// for yaml-cpp.
//
//   Diagnostics mistakes;
//   const Node root = yaml::load_file("task.yaml", mistakes);          // bad YAML: one diagnostic with its
//   place MapReader map(root, "task", mistakes); const auto level = map.integer("level", {.required = true,
//   .low = 1, .high = 3}); for (const Node& input : map.sequence("inputs")) … map.finish(); // unknown keys,
//   with a suggestion if (!mistakes.empty()) throw InvalidInput(mistakes);
//
// Nothing here throws on what a file says: mistakes are collected. Nodes are immutable and cheap to copy; any
// thread may read them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/base/json.h"

namespace warpsmith::yaml {

enum class Kind { kNull, kScalar, kSequence, kMap };

// Where a node begins. Lines and columns count from 1; 0: not known. `file` is shared by the nodes of a file.
struct Place {
  std::shared_ptr<const std::string> file;
  int line = 0, column = 0;
};
Diagnostic mistake_at(const Place& place, std::string message, std::string hint = {});

struct Entry;

// A value of a YAML file. A default-made node is null, nowhere. Aliases are followed, merge keys (<<) are
// merged, tags other than !!str are mistakes, keys are strings.
class Node {
 public:
  Node();
  static Node scalar(Place place, std::string text, bool quoted);
  static Node sequence(Place place, std::vector<Node> items);
  static Node map(Place place, std::vector<Entry> entries);

  Kind kind() const;
  const Place& place() const;
  bool is_null() const { return kind() == Kind::kNull; }
  bool is_scalar() const { return kind() == Kind::kScalar; }
  bool is_sequence() const { return kind() == Kind::kSequence; }
  bool is_map() const { return kind() == Kind::kMap; }

  const std::string& text() const;            // of a scalar, quotes resolved; else empty
  bool quoted() const;                        // a scalar in quotes, or a block scalar: text, never a number
  const std::vector<Node>& items() const;     // of a sequence, else empty
  const std::vector<Entry>& entries() const;  // of a map, in the file's order; else empty
  bool same(const Node& other) const { return data_ == other.data_; }  // one node, not merely an equal one
  Node without_lines() const;  // its places name the file only: for text that came from a command line
  const Node* find(std::string_view key)
      const;  // in a map; null where there is none. The pointer lives as long as the node.

 private:
  struct Data;
  explicit Node(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

struct Entry {
  std::string key;
  Place place;  // of the key
  Node value;
};

// Bounds, so that no file can exhaust this machine. Over one of them: a mistake.
struct Limits {
  std::size_t bytes = 16u << 20;
  std::size_t nodes = 1'000'000;  // aliases counted as often as they are used
  int depth = 100;
};

// One document. Bad YAML, duplicate keys, an alias within its own anchor, more than one document, a file that
// cannot be read or goes over the limits are mistakes; then what is returned is null, or what could be read.
Node load_text(std::string_view text, std::string_view file_name, Diagnostics& diagnostics,
               const Limits& limits = {});
Node load_file(const std::filesystem::path& path, Diagnostics& diagnostics, const Limits& limits = {});

// Whether the root of a file is a map. An empty file, a list or one value is a mistake: "expected a map,
// found nothing (a task begins with schema: …)". No second mistake about a file that could not be read.
bool is_map_file(const Node& root, std::string_view what, std::string_view schema, Diagnostics& diagnostics);

// "a map", "the integer 5", "the string `x`", … for messages.
std::string describe(const Node& node);
// The node as JSON, plain scalars typed by YAML's core schema (null, true/false, integers, numbers), others
// strings.
Json to_json(const Node& node);

// Typed reading. Nothing, and one diagnostic, where the node does not fit; `what` names the value in it
// ("`level`").
std::optional<std::int64_t> read_integer(const Node& node, std::string_view what, Diagnostics& diagnostics);
std::optional<double> read_number(const Node& node, std::string_view what,
                                  Diagnostics& diagnostics);  // finite
std::optional<double> read_share(const Node& node, std::string_view what,
                                 Diagnostics& diagnostics);  // "2%" or 0.02
std::optional<bool> read_boolean(const Node& node, std::string_view what,
                                 Diagnostics& diagnostics);  // true, false; no yes/no
std::optional<std::string> read_string(const Node& node, std::string_view what,
                                       Diagnostics& diagnostics);  // no bare 5 or true
std::optional<std::string> read_text(const Node& node, std::string_view what,
                                     Diagnostics& diagnostics);  // any scalar, as written
std::optional<double> read_seconds(const Node& node, std::string_view what,
                                   Diagnostics& diagnostics);  // "90s", "2h", "1:30:00"
std::optional<std::uint64_t> read_bytes(const Node& node, std::string_view what,
                                        Diagnostics& diagnostics);  // "512MiB", "4GiB"
// One of `words`, with the nearest as a hint where it is none.
std::optional<std::string> read_word(const Node& node, std::string_view what,
                                     std::span<const std::string> words, Diagnostics& diagnostics);

// "did you mean `x`?" or, where nothing is near, "expected one of a, b, c"
std::string suggest(std::string_view word, std::span<const std::string> known);

struct Expect {
  bool required = false;
  double low = -std::numeric_limits<double>::infinity(),
         high = std::numeric_limits<double>::infinity();  // both allowed
};

// Reads one map, key by key: each accessor makes its key an expected one and reports what does not fit. Keys
// are optional unless `required`; where a key is missing or wrong, the accessor returns nothing (an empty
// list).
class MapReader {
 public:
  // `what` names the map in messages: "task", "input `x`". A node that is no map is a mistake (null counts as
  // an empty map).
  MapReader(Node node, std::string what, Diagnostics& diagnostics);

  bool has(std::string_view key) const { return node_.find(key) != nullptr; }
  const Node& node() const { return node_; }
  bool usable() const { return usable_; }  // a map, or nothing

  std::optional<Node> value(std::string_view key, const Expect& expect = {});
  std::optional<std::int64_t> integer(std::string_view key, const Expect& expect = {});
  std::optional<double> number(std::string_view key, const Expect& expect = {});
  std::optional<double> share(std::string_view key,
                              const Expect& expect = {.required = false, .low = 0, .high = 1});
  std::optional<bool> boolean(std::string_view key, const Expect& expect = {});
  std::optional<std::string> string(std::string_view key, const Expect& expect = {});
  std::optional<std::string> text(std::string_view key, const Expect& expect = {});  // any scalar, as written
  std::optional<double> seconds(std::string_view key, const Expect& expect = {});
  std::optional<std::uint64_t> bytes(std::string_view key, const Expect& expect = {});
  std::optional<std::string> word(std::string_view key, std::span<const std::string> words,
                                  const Expect& expect = {});
  std::vector<Node> sequence(std::string_view key, const Expect& expect = {});
  std::vector<std::string> strings(std::string_view key, const Expect& expect = {});
  std::vector<std::string> texts(std::string_view key, const Expect& expect = {});  // any scalars, as written
  std::vector<Entry> map(std::string_view key, const Expect& expect = {});

  // A mistake at the value of `key` (at the map where it has none).
  void mistake(std::string_view key, std::string message, std::string hint = {});
  void expect(std::string_view key) { expected_.emplace_back(key); }
  // Reports keys that nobody asked for. Call it last.
  void finish();

 private:
  Node node_;
  std::string what_;
  Diagnostics& diagnostics_;
  std::vector<std::string> expected_;
  bool usable_;
};

}  // namespace warpsmith::yaml
