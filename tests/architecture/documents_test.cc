// The documents: links and anchors lead somewhere, lines are short, and so is README.md; and the documents
// that the sources name exist.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "lines.h"
#include "slurp.h"

namespace fs = std::filesystem;

namespace {

const fs::path kRoot = WARPSMITH_SOURCE_DIR;
constexpr int kWordsOfReadme = 900;

// A heading as the name of its anchor: lower case, blanks as `-`, no punctuation.
std::string anchor_of(const std::string& heading) {
  std::string out;
  for (const char c : heading) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (c == ' ')
      out += '-';
    else if (std::isalnum(byte) || c == '-' || c == '_' || byte >= 0x80)
      out += static_cast<char>(std::tolower(byte));
  }
  return out;
}

struct Document {
  std::set<std::string> anchors;
  std::vector<std::string> links;  // their targets
  std::vector<int> long_lines;     // their numbers; tables and code may be wider
};

Document read_document(const std::string& text) {
  Document document;
  std::map<std::string, int> seen;
  std::string prose;
  bool fenced = false;
  int number = 0;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with("```")) fenced = !fenced;
    if (fenced || line.starts_with("```") || line.starts_with("    ")) continue;
    if (!line.starts_with("|") && characters(line) > kLongestLine) document.long_lines.push_back(number);
    const std::size_t level = line.find_first_not_of('#');
    if (level != std::string::npos && level > 0 && line[level] == ' ') {
      const std::string name = anchor_of(line.substr(level + 1));
      const int before = seen[name]++;
      document.anchors.insert(before == 0 ? name : name + "-" + std::to_string(before));
    }
    prose += line + "\n";
  }
  std::string plain;  // without code within lines
  bool code = false;
  for (std::size_t at = 0; at < prose.size(); ++at) {
    if (prose.compare(at, 2, "\n\n") == 0) code = false;  // no code spans paragraphs
    if (prose[at] == '`')
      code = !code;
    else if (!code)
      plain += prose[at];
  }
  static const std::regex kLink(R"(\]\(([^)\s]+)\))");
  for (std::sregex_iterator it(plain.begin(), plain.end(), kLink), end; it != end; ++it)
    document.links.push_back((*it)[1]);
  return document;
}

// Those at the top and of the folders that have some. Of results/ not the runs.
std::vector<fs::path> documents() {
  std::vector<fs::path> out;
  const auto take = [&](const fs::path& path) {
    if (path.extension() == ".md") out.push_back(path);
  };
  for (const char* folder : {"", "results", "workflows", "slurm"})
    for (const auto& entry : fs::directory_iterator(kRoot / folder)) take(entry.path());
  for (const char* folder : {"src", "datasets", "tests"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) take(entry.path());
  return out;
}

TEST(DocumentText, IsRead) {
  const std::string wide(111, 'x');
  const Document document = read_document("# The key `a_b`, again\n" + wide + "\n    " + wide + "\n|" + wide +
                                          "\n```\n# no heading\n" + wide +
                                          "\n```\n# The key `a_b`, again\n"
                                          "See [this\ndocument](x.md#y), [`code`](z.md) and `[no](link)`.\n");
  EXPECT_EQ(document.anchors, (std::set<std::string>{"the-key-a_b-again", "the-key-a_b-again-1"}));
  EXPECT_EQ(document.links, (std::vector<std::string>{"x.md#y", "z.md"}));
  EXPECT_EQ(document.long_lines, std::vector<int>{2});
  EXPECT_EQ(characters("4 × 2 ≥ 8"), 9u);
}

TEST(Documents, LinksLeadToFilesAndHeadings) {
  int links = 0;
  for (const fs::path& path : documents()) {
    for (const std::string& link : read_document(slurp(path)).links) {
      if (link.find("://") != std::string::npos) continue;
      ++links;
      const std::size_t hash = link.find('#');
      const std::string file = link.substr(0, hash);
      const fs::path target = file.empty() ? path : path.parent_path() / file;
      const std::string place = fs::relative(path, kRoot).string() + ": " + link;
      ASSERT_TRUE(fs::exists(target)) << place << ": there is no such file";
      if (hash == std::string::npos) continue;
      EXPECT_TRUE(read_document(slurp(target)).anchors.contains(link.substr(hash + 1)))
          << place << ": there is no such heading";
    }
  }
  EXPECT_GT(links, 100);
}

TEST(Documents, LinesAreShort) {
  for (const fs::path& path : documents())
    for (const int line : read_document(slurp(path)).long_lines)
      ADD_FAILURE() << fs::relative(path, kRoot).string() << ":" << line << ": over " << kLongestLine
                    << " characters";
}

TEST(Documents, ReadmeIsShort) {
  std::istringstream in(slurp(kRoot / "README.md"));
  int words = 0;
  for (std::string word; in >> word;) ++words;
  EXPECT_LE(words, kWordsOfReadme);
  EXPECT_GT(words, 100);
}

TEST(Documents, ThoseThatSourcesNameExist) {
  static const std::regex kName(R"([A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+\.md\b)");
  int names = 0;
  for (const char* folder : {"include", "src", "jobs", "workflows", "slurm", "datasets"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      const fs::path& path = entry.path();
      if (!entry.is_regular_file() || path.extension() == ".md") continue;
      const std::string text = slurp(path);
      if (text.find(".md") == std::string::npos) continue;
      for (std::sregex_iterator it(text.begin(), text.end(), kName), end; it != end; ++it, ++names) {
        const std::string name = it->str();
        EXPECT_TRUE(fs::exists(kRoot / name) || fs::exists(path.parent_path() / name))
            << fs::relative(path, kRoot).string() << ": " << name;
      }
    }
  EXPECT_GT(names, 20);
}

}  // namespace
