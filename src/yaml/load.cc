#include <fmt/format.h>
#include <yaml-cpp/anchor.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "source_text.h"
#include "warpsmith/base/characters.h"
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

// yaml-cpp gives one byte for the escapes \N and \_ (U+0085 and U+00A0), and a file's own bytes are UTF-8: so
// a byte that is not stands for the character of that number.
std::string with_escapes_as_utf8(const std::string& value) {
  if (first_not_utf8(value) == value.size()) return value;
  std::string text;
  for (std::size_t at = 0; at < value.size();) {
    const std::size_t bytes = utf8_character(value, at).bytes;
    const unsigned char first = static_cast<unsigned char>(value[at]);
    if (bytes > 1 || first < 0x80)
      text.append(value, at, bytes);
    else
      text += {static_cast<char>(0xC0 | first >> 6), static_cast<char>(0x80 | (first & 0x3F))};
    at += bytes;
  }
  return text;
}

// Builds nodes from yaml-cpp's events. Containers under construction are on a stack; a map takes key and
// value in turn.
class Builder : public YAML::EventHandler {
 public:
  Builder(std::shared_ptr<const std::string> file, const SourceText& source, Diagnostics& diagnostics,
          const Limits& limits)
      : file_(std::move(file)), source_(source), diagnostics_(diagnostics), limits_(limits) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    document_ = mark;
    if (++documents_ > 1)
      throw Stop{place(mark), "a second document begins here", "a file holds one; take out the `---`"};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(Node::scalar(place_of_null(mark), "", false), 1, anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    // yaml-cpp says "?" for plain scalars and "!" for quoted and block ones.
    const bool text = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (!text) check_tag(mark, tag);
    if (tag == "?") check_visible(mark, value);
    add(Node::scalar(place(mark), with_escapes_as_utf8(value), text), 1, anchor);
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
                       YAML::EmitterStyle::value style) override {
    open(mark, tag, anchor, {.is_map = false, .in_block = style == YAML::EmitterStyle::Block});
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(mark, tag, anchor, {.is_map = true, .in_block = style == YAML::EmitterStyle::Block});
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

  const Node& root() const { return root_; }

 private:
  struct Anchored {
    Node node;
    std::size_t weight;  // nodes in it, aliases followed
  };
  struct Shape {
    bool is_map = false;
    bool in_block = false;  // not between braces or brackets
  };
  struct Open {
    Place place;
    int column = 0;  // from 0, in bytes
    Shape shape;
    YAML::anchor_t anchor = 0;
    std::size_t weight = 1;
    std::vector<Node> items;
    std::vector<Entry> entries;
    std::map<std::string, int, std::less<>> lines;  // of the keys so far
    std::optional<Entry> key;
    bool skip_value = false;        // of a duplicate or unusable key
    bool merges = false;            // the key is a plain `<<`
    std::optional<int> merge_line;  // of the first one
    std::vector<Node> merged;
  };

  std::size_t offset(const YAML::Mark& mark) const { return source_.offset(mark.line, mark.column); }
  Place place(const YAML::Mark& mark) const { return source_.place(file_, offset(mark)); }

  // yaml-cpp puts a value that is not there at what comes next. Its place is its key, or the `-` before it.
  Place place_of_null(const YAML::Mark& mark) const {
    if (stack_.empty()) return place(source_.writes_null(offset(mark)) ? mark : document_);
    const Open& top = stack_.back();
    const bool inside = !top.shape.in_block || mark.column > top.column;
    if (inside && source_.writes_null(offset(mark))) return place(mark);
    if (top.shape.is_map) return top.key ? top.key->place : place(mark);
    return top.shape.in_block ? source_.place(file_, source_.dash_before(offset(mark))) : place(mark);
  }

  // Text without quotes is meant as it looks.
  void check_visible(const YAML::Mark& mark, const std::string& value) {
    if (first_invisible(value).bytes == 0) return;
    const Invisible found = first_invisible(source_.text(), offset(mark));
    if (found.bytes > 0) diagnostics_.push_back(invisible_at(source_.place(file_, found.offset), found));
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!" || tag == "tag:yaml.org,2002:map" ||
        tag == "tag:yaml.org,2002:seq")
      return;
    diagnostics_.push_back(mistake_at(place(mark), "tag `" + tag + "` is not known here", "take it out"));
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Shape shape) {
    check_tag(mark, tag);
    if (static_cast<int>(stack_.size()) >= limits_.depth)
      throw Stop{place(mark), "nested more than " + std::to_string(limits_.depth) + " deep", ""};
    Open& top = stack_.emplace_back();
    top.place = place(mark);
    top.column = mark.column;
    top.shape = shape;
    top.anchor = anchor;
  }

  void close() {
    Open top = std::move(stack_.back());
    stack_.pop_back();
    for (const Node& merged : top.merged)
      for (const Entry& entry : merged.entries())
        if (top.lines.emplace(entry.key, entry.place.line).second) top.entries.push_back(entry);
    Node node = top.shape.is_map ? Node::map(top.place, std::move(top.entries))
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
    if (!top.shape.is_map) {
      top.items.push_back(std::move(node));
    } else if (!top.key) {
      take_key(top, node);
    } else {
      take_value(top, std::move(node));
    }
  }

  void take_key(Open& top, const Node& node) {
    top.key = Entry{node.text(), node.place(), Node()};
    top.skip_value = top.merges = false;
    if (!node.is_scalar()) {
      diagnostics_.push_back(mistake_at(node.place(), "a key must be a word, found " + describe(node)));
      top.skip_value = true;
      return;
    }
    top.merges = node.text() == "<<" && !node.quoted();
    if (const auto first = first_line(top, node)) {
      diagnostics_.push_back(mistake_at(node.place(), "key `" + node.text() + "` stands here twice",
                                        "first in line " + std::to_string(*first)));
      top.skip_value = true;
    }
  }

  // The line of an equal key before this one.
  static std::optional<int> first_line(Open& top, const Node& key) {
    if (top.merges) {
      if (top.merge_line) return top.merge_line;
      top.merge_line = key.place().line;
      return std::nullopt;
    }
    const auto [it, fresh] = top.lines.emplace(key.text(), key.place().line);
    return fresh ? std::nullopt : std::optional(it->second);
  }

  void take_value(Open& top, Node node) {
    Entry entry = std::move(*top.key);
    top.key.reset();
    if (top.skip_value) return;
    if (top.merges) {
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
  const SourceText& source_;
  Diagnostics& diagnostics_;
  const Limits& limits_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  Node root_;
  YAML::Mark document_;  // where it begins
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

bool is_indented_by_a_tab(const SourceText& source, int line) {
  const std::string_view text = source.text().substr(source.offset(line, 0));
  return text.substr(0, text.find_first_not_of(" \t")).find('\t') != std::string_view::npos;
}

// What keeps a text from being read as YAML at all.
std::optional<Diagnostic> not_text(const SourceText& source, const std::shared_ptr<const std::string>& file) {
  const std::string_view text = source.text();
  if (const auto zero = text.find('\0'); zero != std::string_view::npos)
    return mistake_at({file, 1, 1}, "the file is no text: byte " + std::to_string(zero) + " is zero");
  if (const std::size_t bad = first_not_utf8(text); bad < text.size())
    return mistake_at(source.place(file, bad),
                      fmt::format("byte 0x{:02x} is not UTF-8", static_cast<unsigned char>(text[bad])),
                      "save the file as UTF-8");
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Character c = utf8_character(text, i);
    if (is_control_character(c.code))
      return mistake_at(source.place(file, i),
                        fmt::format("a control character: U+{:04X}", static_cast<std::uint32_t>(c.code)),
                        "delete it; within double quotes it can be written as \\xNN");
    i += c.bytes;
  }
  return std::nullopt;
}

// Reads a document into `builder`; false where there is none. Throws YAML::ParserException and Stop.
bool parse(std::string_view text, Builder& builder) {
  std::istringstream in{std::string(text)};
  YAML::Parser parser(in);
  if (!parser.HandleNextDocument(builder)) return false;
  parser.HandleNextDocument(builder);
  return true;
}

// An invisible character may be why the text is bad YAML: then it is not, or only further below, once the
// text is what its writer saw.
std::optional<Invisible> culprit(const SourceText& source, const YAML::Mark& mark, const Limits& limits) {
  const Invisible found = first_invisible_in_code(source.text());
  if (found.bytes == 0 || found.offset > source.offset(mark.line + 1, 0)) return std::nullopt;
  const std::string seen = as_seen(source.text());
  const SourceText seen_source(seen);
  Diagnostics ignored;
  Builder builder(nullptr, seen_source, ignored, limits);
  try {
    parse(seen, builder);
  } catch (const YAML::ParserException& e) {
    if (e.mark.line <= mark.line) return std::nullopt;
  } catch (const Stop&) {
  }
  return found;
}

Diagnostic bad_yaml(const YAML::ParserException& e, const SourceText& source,
                    const std::shared_ptr<const std::string>& file, const Limits& limits) {
  if (const auto found = culprit(source, e.mark, limits))
    return invisible_at(source.place(file, found->offset), *found);
  auto [message, hint] = explain(e.msg);
  if (is_indented_by_a_tab(source, e.mark.line)) hint = "indent with spaces, not with tabs";
  return mistake_at(source.place(file, source.offset(e.mark.line, e.mark.column)), std::move(message),
                    std::move(hint));
}

}  // namespace

Node load_text(std::string_view text, std::string_view file_name, Diagnostics& diagnostics,
               const Limits& limits) {
  const auto file = std::make_shared<const std::string>(file_name);
  const Place start{file, 1, 1};
  const auto refuse = [&](Diagnostic mistake) {
    diagnostics.push_back(std::move(mistake));
    return Node();
  };
  if (text.size() > limits.bytes)
    return refuse(
        mistake_at(start, "the file is larger than " + std::to_string(limits.bytes >> 20) + " MiB"));
  const SourceText source(text);
  if (auto mistake = not_text(source, file)) return refuse(std::move(*mistake));
  Builder builder(file, source, diagnostics, limits);
  try {
    if (!parse(source.text(), builder))
      return Node::scalar(start, "", false);  // nothing but white space and comments
  } catch (const YAML::DeepRecursion& e) {
    return refuse(mistake_at(source.place(file, source.offset(e.mark.line, e.mark.column)),
                             "nested more than " + std::to_string(limits.depth) + " deep"));
  } catch (const YAML::ParserException& e) {
    return refuse(bad_yaml(e, source, file, limits));
  } catch (const Stop& e) {
    return refuse(mistake_at(e.place, e.message, e.hint));
  } catch (const std::exception& e) {
    return refuse(mistake_at(start, std::string("bad YAML: ") + e.what()));
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
