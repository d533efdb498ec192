#include <fmt/format.h>
#include <yaml-cpp/anchor.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "warpsmith/base/files.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/yaml/node.h"

namespace warpsmith::yaml {

namespace {

// Ends the reading: limits are exceeded, or there is more than there should be.
struct Stop {
  Place place;
  std::string message, hint;
};

// Builds nodes from yaml-cpp's events. Containers under construction are on a stack; a map takes key and
// value in turn.
class Builder : public YAML::EventHandler {
 public:
  Builder(std::shared_ptr<const std::string> file, Diagnostics& diagnostics, const Limits& limits)
      : file_(std::move(file)), diagnostics_(diagnostics), limits_(limits) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1)
      throw Stop{place(mark), "a second document begins here", "a file holds one; take out the `---`"};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(Node::scalar(place(mark), "", false), 1, anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    // yaml-cpp says "?" for plain scalars and "!" for quoted and block ones.
    const bool text = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (!text) check_tag(mark, tag);
    add(Node::scalar(place(mark), value, text), 1, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto it = anchors_.find(anchor);
    if (it == anchors_.end()) {
      diagnostics_.push_back(mistake_at(place(mark), "an alias stands within its own anchor"));
      add(Node(), 1, 0);
      return;
    }
    add(it->second.node, it->second.weight, 0);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, false);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, true);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

  const Node& root() const { return root_; }

 private:
  struct Anchored {
    Node node;
    std::size_t weight;  // nodes in it, aliases followed
  };
  struct Open {
    Place place;
    bool is_map = false;
    YAML::anchor_t anchor = 0;
    std::size_t weight = 1;
    std::vector<Node> items;
    std::vector<Entry> entries;
    std::map<std::string, int, std::less<>> lines;  // of the keys so far
    std::optional<Entry> key;
    bool skip_value = false;  // of a duplicate or unusable key
    std::vector<Node> merged;
  };

  Place place(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }

  void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!" || tag == "tag:yaml.org,2002:map" ||
        tag == "tag:yaml.org,2002:seq")
      return;
    diagnostics_.push_back(mistake_at(place(mark), "tag `" + tag + "` is not known here", "take it out"));
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, bool is_map) {
    check_tag(mark, tag);
    if (static_cast<int>(stack_.size()) >= limits_.depth)
      throw Stop{place(mark), "nested more than " + std::to_string(limits_.depth) + " deep", ""};
    Open& top = stack_.emplace_back();
    top.place = place(mark);
    top.is_map = is_map;
    top.anchor = anchor;
  }

  void close() {
    Open top = std::move(stack_.back());
    stack_.pop_back();
    for (const Node& merged : top.merged)
      for (const Entry& entry : merged.entries())
        if (top.lines.emplace(entry.key, entry.place.line).second) top.entries.push_back(entry);
    Node node = top.is_map ? Node::map(top.place, std::move(top.entries))
                           : Node::sequence(top.place, std::move(top.items));
    add(std::move(node), top.weight, top.anchor);
  }

  void add(Node node, std::size_t weight, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_[anchor] = {node, weight};
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& top = stack_.back();
    top.weight += weight;
    // Weights only grow towards the root, so the innermost container over the limit is found first.
    if (top.weight > limits_.nodes)
      throw Stop{top.place, "more than " + std::to_string(limits_.nodes) + " values",
                 "aliases count as often as they are used"};
    if (!top.is_map) {
      top.items.push_back(std::move(node));
    } else if (!top.key) {
      take_key(top, node);
    } else {
      take_value(top, std::move(node));
    }
  }

  void take_key(Open& top, const Node& node) {
    top.key = Entry{node.text(), node.place(), Node()};
    top.skip_value = false;
    if (!node.is_scalar()) {
      diagnostics_.push_back(mistake_at(node.place(), "a key must be a word, found " + describe(node)));
      top.skip_value = true;
      return;
    }
    if (node.text() == "<<" && !node.quoted()) return;
    const auto [it, fresh] = top.lines.emplace(node.text(), node.place().line);
    if (fresh) return;
    diagnostics_.push_back(mistake_at(node.place(), "key `" + node.text() + "` stands here twice",
                                      "first in line " + std::to_string(it->second)));
    top.skip_value = true;
  }

  void take_value(Open& top, Node node) {
    Entry entry = std::move(*top.key);
    top.key.reset();
    if (top.skip_value) return;
    if (entry.key == "<<" && !top.lines.contains("<<")) {
      take_merge(top, node);
      return;
    }
    entry.value = std::move(node);
    top.entries.push_back(std::move(entry));
  }

  void take_merge(Open& top, const Node& node) {
    const std::vector<Node> one = {node};
    for (const Node& map : node.is_sequence() ? node.items() : one) {
      if (map.is_map())
        top.merged.push_back(map);
      else
        diagnostics_.push_back(
            mistake_at(node.place(), "`<<` takes a map or a list of maps, found " + describe(map)));
    }
  }

  std::shared_ptr<const std::string> file_;
  Diagnostics& diagnostics_;
  const Limits& limits_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  Node root_;
  int documents_ = 0;
};

// yaml-cpp's messages are for programmers: the common ones in our words, with what to do.
std::pair<std::string, std::string> explain(const std::string& message) {
  const auto has = [&](std::string_view part) { return message.find(part) != std::string::npos; };
  if (has("illegal map value"))
    return {"bad YAML: a `:` where none can stand",
            "put text that holds `: ` in quotes; check the indentation"};
  if (has("end of map not found"))
    return {"bad YAML: a map ends wrongly", "check the indentation and the closing `}`"};
  if (has("end of sequence not found"))
    return {"bad YAML: a list ends wrongly", "check the indentation and the closing `]`"};
  if (has("tab")) return {"bad YAML: " + message, "indent with spaces"};
  if (has("flow not found"))
    return {"bad YAML: " + message,
            "a `{`, `[` or quote before this is not closed; `${…}` within braces needs quotes"};
  if (has("unknown token") || has("illegal"))
    return {"bad YAML: " + message, "put text with special characters in quotes; indent with spaces"};
  return {"bad YAML: " + message, ""};
}

bool is_indented_by_a_tab(std::string_view text, int line) {
  for (; line > 0 && text.find('\n') != std::string_view::npos; --line)
    text.remove_prefix(text.find('\n') + 1);
  return text.substr(0, text.find_first_not_of(" \t")).find('\t') != std::string_view::npos;
}

}  // namespace

Node load_text(std::string_view text, std::string_view file_name, Diagnostics& diagnostics,
               const Limits& limits) {
  const auto file = std::make_shared<const std::string>(file_name);
  const Place start{file, 1, 1};
  if (text.size() > limits.bytes) {
    diagnostics.push_back(
        mistake_at(start, "the file is larger than " + std::to_string(limits.bytes >> 20) + " MiB"));
    return {};
  }
  if (const auto zero = text.find('\0'); zero != std::string_view::npos) {
    diagnostics.push_back(
        mistake_at(start, "the file is no text: byte " + std::to_string(zero) + " is zero"));
    return {};
  }
  if (const std::size_t bad = first_not_utf8(text); bad < text.size()) {
    const std::string_view before = text.substr(0, bad);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const auto column = bad - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
    diagnostics.push_back(
        mistake_at({file, static_cast<int>(line), static_cast<int>(column)},
                   fmt::format("byte 0x{:02x} is not UTF-8", static_cast<unsigned char>(text[bad])),
                   "save the file as UTF-8"));
    return {};
  }
  Builder builder(file, diagnostics, limits);
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    if (!parser.HandleNextDocument(builder))
      return Node::scalar(start, "", false);  // nothing but white space
    parser.HandleNextDocument(builder);
  } catch (const YAML::DeepRecursion& e) {
    diagnostics.push_back(mistake_at({file, e.mark.line + 1, e.mark.column + 1},
                                     "nested more than " + std::to_string(limits.depth) + " deep"));
    return {};
  } catch (const YAML::ParserException& e) {
    auto [message, hint] = explain(e.msg);
    if (is_indented_by_a_tab(text, e.mark.line)) hint = "indent with spaces, not with tabs";
    diagnostics.push_back(
        mistake_at({file, e.mark.line + 1, e.mark.column + 1}, std::move(message), std::move(hint)));
    return {};
  } catch (const Stop& e) {
    diagnostics.push_back(mistake_at(e.place, e.message, e.hint));
    return {};
  } catch (const std::exception& e) {
    diagnostics.push_back(mistake_at(start, std::string("bad YAML: ") + e.what()));
    return {};
  }
  return builder.root();
}

Node load_file(const std::filesystem::path& path, Diagnostics& diagnostics, const Limits& limits) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (!error && size > limits.bytes) {
    diagnostics.push_back(
        {path.string(), 0, 0, "the file is larger than " + std::to_string(limits.bytes >> 20) + " MiB", ""});
    return {};
  }
  try {
    return load_text(read_file(path), path.string(), diagnostics, limits);
  } catch (const Error& e) {
    diagnostics.push_back({"", 0, 0, e.what(), ""});
    return {};
  }
}

}  // namespace warpsmith::yaml
