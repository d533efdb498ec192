#include "warpsmith/base/error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace warpsmith {
namespace {

TEST(Error, ContextReadsFromTheOutsideIn) {
  const Error inner("cannot open y", kExitBusy);
  const Error outer = inner.with_context("while loading run x");
  EXPECT_STREQ(outer.what(), "while loading run x: cannot open y");
  EXPECT_EQ(outer.exit_code(), kExitBusy);
}

TEST(Error, SystemErrorsKeepTheirNumber) {
  const Error error = system_error("cannot write a", ENOSPC);
  EXPECT_STREQ(error.what(), "cannot write a: No space left on device");
  EXPECT_EQ(error.exit_code(), kExitEnvironment);
  EXPECT_TRUE(is_disk_full(error));
  EXPECT_TRUE(is_disk_full(error.with_context("while ingesting")));
  EXPECT_TRUE(is_disk_full(system_error("x", EDQUOT)));
  EXPECT_FALSE(is_disk_full(system_error("x", EACCES)));
  EXPECT_FALSE(is_disk_full(Error("x")));
}

TEST(Diagnostic, Text) {
  EXPECT_EQ(to_string(Diagnostic{"a.yaml", 3, 7, "unknown key `x`", "did you mean `y`?"}),
            "a.yaml:3:7: unknown key `x` (did you mean `y`?)");
  EXPECT_EQ(to_string(Diagnostic{"a.yaml", 0, 0, "is empty", ""}), "a.yaml: is empty");
  EXPECT_EQ(to_string(Diagnostic{"", 0, 0, "no file", ""}), "no file");
}

TEST(InvalidInput, HoldsAllMistakesALineEach) {
  const InvalidInput error({{"a", 1, 2, "one", ""}, {"a", 3, 4, "two", "hint"}});
  EXPECT_STREQ(error.what(), "a:1:2: one\na:3:4: two (hint)");
  EXPECT_EQ(error.exit_code(), kExitUsage);
  EXPECT_EQ(error.diagnostics().size(), 2u);
}

}  // namespace
}  // namespace warpsmith
