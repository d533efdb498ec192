// What the guard counts in a child's folders.
#include "guard/written.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "scratch.h"
#include "warpsmith/base/files.h"

namespace warpsmith::guard {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

class Written : public testing::Test {
 protected:
  void write(const fs::path& path, std::uint64_t bytes) {
    make_folders(path.parent_path());
    write_file_atomic(path, std::string(bytes, 'x'));
  }
  // "" where nothing is passed.
  static std::string over(WrittenFiles& files) {
    const char* const reason = files.look();
    return reason == nullptr ? "" : reason;
  }
  Scratch scratch_;
};

TEST_F(Written, CountsWhatCameSince) {
  write(scratch_ / "before", 10 * kMiB);
  WrittenFiles files({scratch_.path(), "/nowhere/at/all"}, 2 * kMiB, 10);
  EXPECT_EQ(over(files), "");
  write(scratch_ / "in/a", kMiB);
  EXPECT_EQ(over(files), "");
  write(scratch_ / "in/b", kMiB);
  EXPECT_EQ(over(files), "file_bytes");
  fs::remove(scratch_ / "before");
  EXPECT_EQ(over(files), "");
  for (int i = 0; i < 8; ++i) write(scratch_ / ("f" + std::to_string(i)), 0);
  EXPECT_EQ(over(files), "");
  fs::create_symlink("/", scratch_ / "link");  // counts, and is not followed
  EXPECT_EQ(over(files), "file_count");
}

TEST_F(Written, SeveralFoldersCountTogetherAndOnce) {
  const Scratch other;
  fs::create_directory(scratch_ / "in");
  for (const bool inner_first : {false, true}) {
    std::vector<std::string> folders = {scratch_.path(), scratch_ / "in", other.path()};
    if (inner_first) std::swap(folders[0], folders[1]);
    WrittenFiles files(folders, 5 * kMiB, 0);
    write(scratch_ / "in/a", 2 * kMiB);
    write(other / "a", 2 * kMiB);
    EXPECT_EQ(over(files), "");
    write(other / "b", 2 * kMiB);
    EXPECT_EQ(over(files), "file_bytes");
    for (const fs::path& path : {scratch_ / "in/a", other / "a", other / "b"}) fs::remove(path);
  }
}

TEST_F(Written, HolesCostNothingAndHardLinksCountOnce) {
  WrittenFiles files({scratch_.path()}, 2 * kMiB, 0);
  write(scratch_ / "hole", 0);
  ASSERT_EQ(::truncate((scratch_ / "hole").c_str(), 1ll << 40), 0);
  write(scratch_ / "a", kMiB);
  for (int i = 0; i < 20; ++i) fs::create_hard_link(scratch_ / "a", scratch_ / ("link" + std::to_string(i)));
  EXPECT_EQ(over(files), "");
}

TEST_F(Written, DepthHasAnEnd) {
  WrittenFiles files({scratch_.path()}, 0, 1000);
  fs::path path = scratch_.path();
  for (int i = 0; i < kMostDepth; ++i) path /= "in";
  make_folders(path);
  EXPECT_EQ(over(files), "");
  make_folders(path / "in");
  EXPECT_EQ(over(files), "folder_depth");
}

TEST_F(Written, ChangesDuringALookAreNoticed) {
  WrittenFiles files({scratch_.path()}, 0, 1000);
  ::usleep(30'000);  // the file system's clock ticks
  EXPECT_EQ(over(files), "");
  EXPECT_FALSE(files.changing());
  const pid_t pid = ::fork();
  if (pid == 0)
    for (;;) {
      ::mkdir((scratch_ / "x").c_str(), 0755);
      ::rmdir((scratch_ / "x").c_str());
    }
  bool noticed = false;
  for (int i = 0; i < 200 && !noticed; ++i) {  // on a busy machine the child takes a while to begin
    ::usleep(20'000);
    EXPECT_EQ(over(files), "");
    noticed = files.changing();
  }
  EXPECT_TRUE(noticed);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

// Of a process without root's rights, which has to give itself those of the owner.
TEST_F(Written, ClosedFoldersAreOpened) {
  ASSERT_EQ(::chmod(scratch_.path().c_str(), 0777), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(9);
    const fs::path mine = scratch_ / "mine";
    fs::create_directory(mine);
    WrittenFiles files({mine}, kMiB, 0);
    write(mine / "closed/in/a", 2 * kMiB);
    write(mine / "listed/a", 0);
    for (const char* name : {"closed/in", "closed", "."}) fs::permissions(mine / name, fs::perms::none);
    if (over(files) != "file_bytes") ::_exit(1);
    fs::remove(mine / "closed/in/a");
    fs::permissions(mine / "listed", fs::perms::owner_read);
    if (over(files) != "") ::_exit(2);
    fs::permissions(mine / "listed", fs::perms::owner_exec);
    if (over(files) != "") ::_exit(3);
    fs::remove_all(mine);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace warpsmith::guard
