// The sources are as the formatter leaves them (`make format`), and their comments fit a window.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lines.h"
#include "output_of.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"

namespace warpsmith {
namespace {

const fs::path kRoot = WARPSMITH_SOURCE_DIR;
constexpr const char* kFormatter = "clang-format-14";  // versions differ in what they leave

std::vector<fs::path> sources() {
  std::vector<fs::path> out;
  for (const char* folder : {"include", "src", "jobs", "tests"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder))
      if (entry.path().extension() == ".h" || entry.path().extension() == ".cc") out.push_back(entry.path());
  return out;
}

TEST(Format, SourcesAreAsTheFormatterLeavesThem) {
  int missing = 0;
  output_of(std::string("command -v ") + kFormatter, &missing);
  if (missing != 0) GTEST_SKIP() << "there is no " << kFormatter;
  std::string command = "cd '" + kRoot.string() + "' && " + kFormatter + " --dry-run -Werror";
  for (const fs::path& source : sources()) command += " '" + fs::relative(source, kRoot).string() + "'";
  int status = 0;
  const std::string said = output_of(command, &status);
  EXPECT_EQ(status, 0) << said << "run: make format";
}

TEST(Format, CommentsAreShort) {
  ASSERT_GT(sources().size(), 500u);
  EXPECT_EQ(characters("// 4 × 2 ≥ 8"), 12u);
  for (const fs::path& source : sources()) {
    int number = 0;
    for (const std::string& line : split_lines(read_file(source))) {
      ++number;
      if (!trim(line).starts_with("//")) continue;
      EXPECT_LE(characters(line), kLongestLine) << source.string() << ":" << number;
    }
  }
}

}  // namespace
}  // namespace warpsmith
