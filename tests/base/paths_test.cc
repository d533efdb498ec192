#include "warpsmith/base/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "no_permission.h"
#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"

namespace warpsmith {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), kExitEnvironment);
    return e.what();
  }
  return "no error";
}

class Paths : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file_atomic(scratch_ / "file", "x");
    make_folders(scratch_ / "folder" / "b");
    write_file_atomic(scratch_ / "folder" / "a", "x");
    fs::create_symlink("loop", scratch_ / "loop");
    fs::create_symlink("nothing", scratch_ / "broken");
    fs::create_symlink("folder", scratch_ / "link");
  }
  Scratch scratch_;
};

TEST_F(Paths, SaysWhatIsThere) {
  for (const char* there : {"file", "folder", "link", "link/a"})
    EXPECT_TRUE(path_exists(scratch_ / there)) << there;
  for (const char* missing : {"nothing", "broken", "file/x", "nothing/x"})
    EXPECT_FALSE(path_exists(scratch_ / missing)) << missing;
  EXPECT_TRUE(is_folder(scratch_ / "link"));
  EXPECT_FALSE(is_folder(scratch_ / "file"));
  EXPECT_THAT(folder_entries(scratch_ / "folder"), ElementsAre(scratch_ / "folder/a", scratch_ / "folder/b"));
  EXPECT_THAT(folder_entries(scratch_ / "nothing"), ElementsAre());
  EXPECT_THAT(folder_entries(scratch_ / "file"), ElementsAre());
}

TEST_F(Paths, AnErrorNamesWhatCannotBeLookedAt) {
  for (const fs::path& path :
       {scratch_ / "loop", scratch_ / "loop" / "x", scratch_ / std::string(300, 'a')}) {
    EXPECT_THAT(error_of([&] { path_exists(path); }), HasSubstr("cannot look at " + path.string() + ": "));
    EXPECT_THAT(error_of([&] { is_folder(path); }), HasSubstr(path.string()));
  }
  EXPECT_THAT(error_of([&] { folder_entries(scratch_ / "loop"); }), HasSubstr("cannot read folder"));
}

TEST_F(Paths, AFolderThatMayNotBeEntered) {
  ::chmod((scratch_ / "folder").c_str(), 0);
  const NoPermission user;
  if (!user.works()) GTEST_SKIP() << "root cannot become another user here";
  EXPECT_THAT(error_of([&] { path_exists(scratch_ / "folder/a"); }), HasSubstr("Permission denied"));
  EXPECT_THAT(error_of([&] { folder_entries(scratch_ / "folder"); }), HasSubstr("Permission denied"));
}

}  // namespace
}  // namespace warpsmith
