// The tables of keys in workflows/README.md against the format itself: each key in its table with the right
// type, default and meaning, and no other.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"
#include "warpsmith/workflow/load.h"

namespace warpsmith::workflow {
namespace {

// ---- the document ----

struct Table {
  std::string heading;              // "### `model`"
  std::string above;                // the last line of text before it
  std::vector<std::string> header;  // cells
  std::vector<std::string> rows;    // lines
};

struct Document {
  std::vector<Table> tables;
  std::map<std::string, std::string> sections;  // heading -> everything below it
};

std::vector<std::string> cells(const std::string& row) {
  std::vector<std::string> out;
  std::istringstream in(row.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) out.push_back(trim(cell));
  return out;
}

Document read_document() {
  Document document;
  std::istringstream in(read_file(fs::path(WARPSMITH_SOURCE_DIR) / "workflows/README.md"));
  std::string heading, above, before;
  for (std::string line; std::getline(in, line); before = line) {
    if (line.starts_with("#")) heading = line;
    document.sections[heading] += line + "\n";
    if (!line.starts_with("|")) {
      if (!line.empty()) above = line;
    } else if (!before.starts_with("|")) {
      document.tables.push_back({heading, above, cells(line), {}});
    } else if (!line.starts_with("| ---")) {
      document.tables.back().rows.push_back(line);
    }
  }
  return document;
}

// Each paragraph as one line.
std::string unwrap(std::string text) {
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
    if (text.compare(at, 2, "\n\n") == 0)
      ++at;
    else
      text[at] = ' ';
  }
  return text;
}

// Names in backquotes.
std::set<std::string> in_backquotes(const std::string& text) {
  std::set<std::string> out;
  for (std::size_t at = text.find('`'); at != std::string::npos; at = text.find('`', at + 1)) {
    const std::size_t begin = at + 1;
    at = text.find('`', begin);
    if (at == std::string::npos) break;
    out.insert(text.substr(begin, at - begin));
  }
  return out;
}

// ---- a key of the schema as a row ----

std::string show(double x) {
  if (x != std::floor(x) || std::abs(x) >= 1e9) return fmt::format("{:g}", x);
  std::string digits = fmt::format("{:.0f}", x);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string range(const Json& schema, double unit = 1, const char* sign = "") {
  const bool above = schema.contains("exclusiveMinimum");
  const double low = schema.at(above ? "exclusiveMinimum" : "minimum").get<double>();
  return fmt::format("{} {}{} to {}{}", above ? "over" : "from", show(low * unit), sign,
                     show(schema.at("maximum").get<double>() * unit), sign);
}

struct Shown {
  std::string type, standard;
};

Shown show_key(const Json& key) {
  const Json value = key.at("anyOf").at(0), standard = key.value("default", Json());
  if (value.contains("enum")) {
    std::string words;
    for (const Json& word : value.at("enum"))
      words += (words.empty() ? "`" : " / `") + word.get<std::string>() + "`";
    return {words, standard.is_null() ? "" : standard.get<std::string>()};
  }
  if (value.contains("anyOf")) {  // a number, or text with a unit
    const Json number = value.at("anyOf").at(0);
    if (number.at("type") == "number")
      return {"share " + range(number, 100, "%"), show(standard.get<double>() * 100) + "%"};
    std::uint64_t bytes = standard.get<std::uint64_t>();
    int unit = 0;
    while (bytes > 0 && bytes % 1024 == 0) bytes /= 1024, ++unit;
    static constexpr const char* kUnits[] = {"", "KiB", "MiB", "GiB", "TiB"};
    return {"size", bytes == 0 ? "" : std::to_string(bytes) + kUnits[unit]};
  }
  const std::string type = value.at("type").get<std::string>();
  if (type == "array") {
    const Json item = value.at("items");
    if (item.contains("enum")) {
      std::string words, given;
      for (const Json& word : item.at("enum"))
        words += (words.empty() ? "list of `" : " / `") + word.get<std::string>() + "`";
      for (const Json& word : standard) given += (given.empty() ? "" : ", ") + word.get<std::string>();
      return {words, "[" + given + "]"};
    }
    return {item.at("type") == "integer" ? "list of integers " + range(item) : "list of words", ""};
  }
  if (type == "string" && value.contains("pattern"))
    return {"duration", standard == "0s" ? "" : standard.get<std::string>()};
  if (type == "string") return {"string", standard.get<std::string>()};
  if (type == "boolean") return {"boolean", standard.dump()};
  return {type + " " + range(value), standard.dump()};
}

std::string row_of(const std::string& name, const Json& key) {
  const Shown shown = show_key(key);
  return fmt::format("| `{}` | {} | {} | {} |", name, shown.type,
                     shown.standard.empty() ? "–" : "`" + shown.standard + "`",
                     key.at("description").get<std::string>());
}

std::set<std::string> rows_of(const Json& properties, const std::set<std::string>& without = {}) {
  std::set<std::string> rows;
  for (const auto& [name, key] : properties.items())
    if (!without.contains(name)) rows.insert(row_of(name, key));
  return rows;
}

std::string lines(const std::set<std::string>& rows) {
  std::string out;
  for (const std::string& row : rows) out += row + "\n";
  return out;
}

std::set<std::string> names(const Json& object) {
  std::set<std::string> out;
  for (const auto& [name, value] : object.items()) out.insert(name);
  return out;
}

// ---- the comparison ----

const std::set<std::string> kBlocks = {"model",   "sample",  "optimizer", "lora",
                                       "compile", "measure", "prompt",    "policy"};
const std::set<std::string> kOfEveryStage = {"name", "kind", "needs", "matrix", "seed"};
const std::set<std::string> kShared = {"device",    "tolerate", "max_jobs", "shard_time",
                                       "resources", "retry",    "notify"};
const std::set<std::string> kMaps = {"resources", "retry", "notify"};

class WorkflowReadme : public testing::Test {
 protected:
  // The only table with this header's first cell in the section, below a line that begins with `above`.
  const Table& table(const std::string& heading, const std::string& header, const std::string& above = "") {
    static const Table none;
    const Table* found = nullptr;
    for (const Table& t : document_.tables) {
      if (t.heading != heading || t.header.front() != header || !t.above.starts_with(above)) continue;
      EXPECT_EQ(found, nullptr) << "two tables of keys below " << heading << ", " << above;
      found = &t;
    }
    EXPECT_NE(found, nullptr) << "no table of keys below " << heading << ", " << above;
    if (found != nullptr) compared_.insert(found);
    return found == nullptr ? none : *found;
  }

  // Rows with type and default.
  void compare(const std::string& heading, const std::string& above, const std::set<std::string>& rows) {
    const Table& t = table(heading, "key", above);
    EXPECT_EQ(t.header, (std::vector<std::string>{"key", "type", "default", "meaning"}));
    EXPECT_EQ(t.rows.size(), rows.size()) << heading;
    EXPECT_EQ(lines({t.rows.begin(), t.rows.end()}), lines(rows)) << heading;
  }

  // Names in the first cell, one or more a row.
  void compare_names(const std::string& heading, const std::string& header,
                     const std::set<std::string>& wanted) {
    std::set<std::string> found;
    for (const std::string& row : table(heading, header).rows)
      for (const std::string& name : in_backquotes(cells(row).front()))
        EXPECT_TRUE(found.insert(name).second) << name << " stands twice";
    EXPECT_EQ(found, wanted) << heading;
  }

  const Document document_ = read_document();
  const Json schema_ = workflow_json_schema();
  std::set<const Table*> compared_;
};

TEST_F(WorkflowReadme, TablesHoldTheKeysOfTheFormat) {
  const Json& file = schema_.at("properties");
  const Json& defs = schema_.at("$defs");
  compare_names("## Keys of the file", "key", names(file));
  compare_names("### `dataset`", "key", names(file.at("dataset").at("properties")));
  compare("#### `synthesize`", "",
          rows_of(file.at("dataset").at("properties").at("synthesize").at("properties")));
  compare("### For every stage", "`budget`", rows_of(file.at("budget").at("properties")));
  Json endpoint = defs.at("policy").at("properties").at("endpoint").at("properties");
  compare("### `policy`", "`budget` of an endpoint", rows_of(endpoint.at("budget").at("properties")));
  endpoint.erase("budget");
  compare("### `policy`", "`endpoint`", rows_of(endpoint));
  Json policy = defs.at("policy").at("properties");
  policy.erase("endpoint");
  compare("### `policy`", "`policy`", rows_of(policy));
  Json checker = defs.at("checker").at("properties");
  checker.erase("endpoint");
  compare("### `checker`", "`checker`", rows_of(checker));
  for (const std::string& block : kBlocks)
    if (block != "policy") compare("### `" + block + "`", "", rows_of(defs.at(block).at("properties")));

  Json plain = Json::object();
  for (const std::string& name : kShared)
    if (!kMaps.contains(name)) plain[name] = file.at(name);
  const std::string every = "### For every stage";
  compare(every, every, rows_of(plain));
  compare_names("## Stages", "key of every stage", kOfEveryStage);
  for (const std::string& map : kMaps) {
    // Keys of `resources` stand once more below the name of a job.
    compare(every, "`" + map + "`",
            rows_of(file.at(map).at("properties"),
                    map == "resources"
                        ? std::set<std::string>{"generate", "compile", "measure", "train", "service"}
                        : std::set<std::string>{}));
  }

  for (const Json& name : defs.at("stage").at("properties").at("kind").at("enum")) {
    const std::string kind = name.get<std::string>(), heading = "### `kind: " + kind + "`";
    const Json& stage = defs.at("stage_" + kind);
    Json own = stage.at("properties");
    std::set<std::string> blocks;
    for (const std::string& key : names(own)) {
      if (kBlocks.contains(key)) blocks.insert(key);
      if (kBlocks.contains(key) || kShared.contains(key) || kOfEveryStage.contains(key) || key == "checker")
        own.erase(key);
    }
    const std::string section = unwrap(document_.sections.at(heading));
    const std::string meaning = stage.at("description").get<std::string>();
    const std::size_t at = section.find(meaning);
    ASSERT_NE(at, std::string::npos) << heading << ": " << meaning;
    const std::size_t begin = at + meaning.size();
    const std::string said = section.substr(begin, section.find('\n', begin) - begin);
    EXPECT_EQ(said.starts_with(" Blocks: "), !blocks.empty()) << heading << said;
    EXPECT_EQ(in_backquotes(said), blocks) << heading;
    if (kind == "collect") {
      compare(heading, "`augment`", rows_of(own.at("augment").at("properties")));
      Json teacher = own.at("teachers").at("items").at("properties");  // those of an endpoint, too
      for (const std::string& key : names(defs.at("policy").at("properties").at("endpoint").at("properties")))
        EXPECT_EQ(teacher.erase(key), 1u) << key;
      compare(heading, "`teachers`", rows_of(teacher));
      EXPECT_EQ(names(own), (std::set<std::string>{"augment", "teachers"}));
    } else {
      compare(heading, "", rows_of(own));
    }
  }

  for (const Table& t : document_.tables) {
    if (t.header.front() != "key") continue;
    EXPECT_TRUE(compared_.contains(&t)) << "what is this table of keys? " << t.heading << ", " << t.above;
  }
}

}  // namespace
}  // namespace warpsmith::workflow
