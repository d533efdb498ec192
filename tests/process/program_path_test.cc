// Where programs are found that people name, or have in PATH.
#include "warpsmith/process/program_path.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "warpsmith/base/files.h"
#include "warpsmith/base/temporary_folder.h"

namespace warpsmith::process {
namespace {

namespace fs = std::filesystem;

class ProgramPath : public testing::Test {
 protected:
  ProgramPath() {
    if (const char* path = std::getenv("PATH")) before_ = path;
  }
  ~ProgramPath() override { ::setenv("PATH", before_.c_str(), 1); }

  fs::path make(const std::string& name, bool executable = true) {
    const fs::path file = folder_.path() / name;
    fs::create_directories(file.parent_path());
    write_file_atomic(file, "#!/bin/sh\n");
    fs::permissions(file, executable ? fs::perms::owner_all : fs::perms::owner_read);
    return file;
  }

  TemporaryFolder folder_{"programs"};
  std::string before_;
};

TEST_F(ProgramPath, TheFirstThatMayBeRunCounts) {
  make("a/tool", false);
  fs::create_directories(folder_.path() / "b/tool");
  const fs::path tool = make("c/tool");
  make("d/tool");
  std::string folders;
  for (const char* name : {"none", "a", "b", "c", "d"}) folders += (folder_.path() / name).string() + ':';
  EXPECT_EQ(find_program("tool", folders), tool);
  EXPECT_EQ(find_program("other", folders), fs::path());
  EXPECT_EQ(find_program("tool", ""), fs::path());
  EXPECT_EQ(find_program("tool", "::"), fs::path());
  ::setenv("PATH", folders.c_str(), 1);
  EXPECT_EQ(find_program("tool"), tool);
}

TEST_F(ProgramPath, ANameWithASlashIsAPath) {
  const fs::path tool = make("tool");
  EXPECT_EQ(find_program(tool.string()), tool);
  EXPECT_EQ(find_program(fs::relative(tool).string()), fs::absolute(fs::relative(tool)));
  EXPECT_EQ(find_program(make("text", false).string()), fs::path());
  EXPECT_EQ(find_program(folder_.path().string()), fs::path());
  EXPECT_EQ(find_program((folder_.path() / "none").string()), fs::path());
}

TEST_F(ProgramPath, WithoutPathTheUsualFoldersCount) {
  ::setenv("PATH", "", 1);
  EXPECT_EQ(search_path(), kUsualFolders);
  EXPECT_FALSE(find_program("sh").empty());
  ::unsetenv("PATH");
  EXPECT_EQ(search_path(), kUsualFolders);
}

// /etc is not in the sandbox: a compiler that is named by way of it would not be there.
TEST_F(ProgramPath, LeadsPastDebiansAlternatives) {
  for (const char* name : {"/usr/bin/c++", "/usr/bin/cc"}) {
    std::error_code error;
    const fs::path found = past_alternatives(name);
    EXPECT_NE(found.parent_path(), "/etc/alternatives");
    if (fs::exists(name, error)) {
      EXPECT_TRUE(fs::equivalent(found, name, error)) << found;
    }
  }
  fs::create_symlink("real", folder_.path() / "link");
  EXPECT_EQ(past_alternatives(folder_.path() / "link"), folder_.path() / "link");  // goes by its name
  EXPECT_EQ(past_alternatives(folder_.path() / "none"), folder_.path() / "none");
  EXPECT_EQ(past_alternatives({}), fs::path());
}

}  // namespace
}  // namespace warpsmith::process
