// What `import` knows of modules before it has seen them.
#include "import_tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warpsmith/base/files.h"
#include "warpsmith/yaml/node.h"

namespace warpsmith::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

// The program has the file of datasets/ as it was when it was built.
TEST(DegenerateModules, AreThoseOfTheFile) {
  Diagnostics mistakes;
  const yaml::Node list = yaml::load_file(WARPSMITH_DATASETS "/kernelbench_degenerate.yaml", mistakes);
  ASSERT_TRUE(mistakes.empty()) << to_string(mistakes.front());
  EXPECT_FALSE(list.entries().empty());
  for (const yaml::Entry& entry : list.entries()) {
    EXPECT_THAT(entry.key, MatchesRegex("[0-9a-f]{64}"));
    ASSERT_NE(entry.value.find("task"), nullptr) << entry.key;
    ASSERT_NE(entry.value.find("why"), nullptr) << entry.key;
    const auto why = yaml::read_string(*entry.value.find("why"), "why", mistakes);
    ASSERT_TRUE(why) << entry.key;
    EXPECT_EQ(why_degenerate(entry.key), *why);
    EXPECT_THAT(*why, Not(HasSubstr("\""))) << "it stands in quotes in task.yaml";
  }
  EXPECT_EQ(why_degenerate(std::string(64, '0')), "");
}

}  // namespace
}  // namespace warpsmith::cli
