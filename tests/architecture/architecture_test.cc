// The arrows between modules are those of the table in src/README.md, and no others.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "slurp.h"

namespace fs = std::filesystem;

namespace {

struct Module {
  std::set<std::string> uses;      // closure of what its row names, itself and base
  std::vector<std::string> owned;  // third-party include prefixes
};

std::vector<std::string> quoted_words(const std::string& cell) {
  std::vector<std::string> words;
  static const std::regex kWord("`([a-z0-9_]+)`");
  for (std::sregex_iterator it(cell.begin(), cell.end(), kWord), end; it != end; ++it)
    words.push_back((*it)[1]);
  return words;
}

std::map<std::string, Module> read_table() {
  std::map<std::string, Module> modules;
  std::istringstream lines(slurp(fs::path(WARPSMITH_SOURCE_DIR) / "src/README.md"));
  static const std::regex kRow(R"(\| `([a-z0-9_]+)` \|([^|]*)\|([^|]*)\|([^|]*)\|)");
  for (std::string line; std::getline(lines, line);) {
    std::smatch row;
    if (!std::regex_match(line, row, kRow)) continue;
    Module& module = modules[row[1]];
    for (const std::string& used : quoted_words(row[3])) module.uses.insert(used);
    std::istringstream owned(std::regex_replace(std::string(row[4]), std::regex("[ ,]+"), " "));
    for (std::string word; owned >> word;) module.owned.push_back(word);
    module.uses.insert({row[1], "base"});
  }
  for (bool grown = true; grown;) {
    grown = false;
    for (auto& [name, module] : modules)
      for (const std::string& used : std::set<std::string>(module.uses))
        for (const std::string& further : modules[used].uses) grown |= module.uses.insert(further).second;
  }
  return modules;
}

struct Include {
  fs::path file;
  std::string module, path;
  int line = 0;
};

std::vector<Include> all_includes() {
  std::vector<Include> includes;
  const fs::path root = WARPSMITH_SOURCE_DIR;
  static const std::regex kInclude(R"(\s*#\s*include\s*[<"]([^>"]+)[>"].*)");
  for (const fs::path& base : {root / "include/warpsmith", root / "src"})
    for (const auto& entry : fs::recursive_directory_iterator(base)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cc" && extension != ".cu") continue;
      std::istringstream lines(slurp(entry.path()));
      const std::string module = fs::relative(entry.path(), base).begin()->string();
      int number = 0;
      for (std::string line; std::getline(lines, line);) {
        ++number;
        std::smatch match;
        if (std::regex_match(line, match, kInclude))
          includes.push_back({entry.path(), module, match[1], number});
      }
    }
  return includes;
}

TEST(Architecture, TableIsRead) {
  const auto modules = read_table();
  EXPECT_GE(modules.size(), 20u);
  EXPECT_TRUE(modules.at("stages").uses.contains("records"));  // by run
  EXPECT_FALSE(modules.at("stages").uses.contains("store"));
}

TEST(Architecture, ModulesIncludeOnlyThoseThatTheirRowNames) {
  auto modules = read_table();
  for (const Include& include : all_includes()) {
    ASSERT_TRUE(modules.contains(include.module))
        << include.file << ": module `" << include.module << "` has no row in src/README.md";
    if (!include.path.starts_with("warpsmith/")) continue;
    const std::string used = include.path.substr(10, include.path.find('/', 10) - 10);
    EXPECT_TRUE(modules[include.module].uses.contains(used))
        << include.file.string() << ":" << include.line << ": `" << include.module << "` may not use `"
        << used << "`";
  }
}

// One module, but for what a row of another names as well.
TEST(Architecture, ThirdPartyCodeIsIncludedInItsModule) {
  const auto modules = read_table();
  const auto owns = [&](const std::string& module, const std::string& prefix) {
    const auto& owned = modules.at(module).owned;
    return std::find(owned.begin(), owned.end(), prefix) != owned.end();
  };
  for (const Include& include : all_includes())
    for (const auto& [name, module] : modules)
      for (const std::string& prefix : module.owned) {
        const bool hit = include.path == prefix || include.path.starts_with(prefix + "/");
        EXPECT_TRUE(!hit || owns(include.module, prefix))
            << include.file.string() << ":" << include.line << ": " << include.path << " belongs in `" << name
            << "`";
      }
}

TEST(Architecture, TorchStaysInItsModules) {
  static const std::set<std::string> kTorch = {"measure", "model", "learn"};
  for (const Include& include : all_includes()) {
    const bool torch = include.path.starts_with("torch/") || include.path.starts_with("ATen/") ||
                       include.path.starts_with("c10/");
    EXPECT_TRUE(!torch || kTorch.contains(include.module)) << include.file.string() << ":" << include.line;
  }
}

// Some of a torch module's headers need no torch: only those may be used from elsewhere.
bool brings_torch(const std::string& header) {
  std::istringstream lines(slurp(fs::path(WARPSMITH_SOURCE_DIR) / "include" / header));
  static const std::regex kInclude(R"(\s*#\s*include\s*[<"]([^>"]+)[>"].*)");
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, kInclude)) continue;
    const std::string path = match[1];
    if (path.starts_with("torch/") || path.starts_with("ATen/") || path.starts_with("c10/")) return true;
    if (path.starts_with("warpsmith/") && brings_torch(path)) return true;
  }
  return false;
}

TEST(Architecture, HeadersThatBringTorchAreUsedInItsModulesAlone) {
  static const std::set<std::string> kTorch = {"measure", "model", "learn"};
  EXPECT_TRUE(brings_torch("warpsmith/model/decoder.h"));
  EXPECT_FALSE(brings_torch("warpsmith/model/folder.h"));
  for (const Include& include : all_includes())
    EXPECT_TRUE(kTorch.contains(include.module) || !include.path.starts_with("warpsmith/") ||
                !brings_torch(include.path))
        << include.file.string() << ":" << include.line << ": " << include.path;
}

TEST(Architecture, PublicHeadersOutsideTheTorchModulesShowOnlyStandardTypes) {
  static const std::set<std::string> kTorch = {"measure", "model", "learn"};
  for (const Include& include : all_includes()) {
    const bool is_public = include.file.string().find("/include/warpsmith/") != std::string::npos;
    if (!is_public || kTorch.contains(include.module)) continue;
    const bool standard = include.path.starts_with("warpsmith/") ||
                          include.path.find('.') == std::string::npos || include.path.starts_with("sys/") ||
                          include.path == "nlohmann/json.hpp" || include.path == "nlohmann/json_fwd.hpp";
    const bool cli = include.module == "cli";
    EXPECT_TRUE(standard || cli) << include.file.string() << ":" << include.line << ": " << include.path;
  }
}

}  // namespace
