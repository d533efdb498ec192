#include "warpsmith/base/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include "scratch.h"
#include "warpsmith/base/error.h"

namespace warpsmith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// The text of the Error that `act` throws.
template <typename Act>
std::string problem_of(Act act) {
  try {
    act();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(ReadFile, WholeAlsoWithZeroBytesAndWithoutASize) {
  const Scratch scratch;
  const std::string content = std::string("a\0b\n", 4) + std::string(200'000, 'x');
  write_file_atomic(scratch / "f", content);
  EXPECT_EQ(read_file(scratch / "f"), content);
  EXPECT_THAT(read_file("/proc/self/status"), HasSubstr("Pid:"));  // says that it has size 0
}

TEST(ReadFile, ProblemsNameTheFileAndTheCause) {
  const Scratch scratch;
  EXPECT_EQ(problem_of([&] { read_file(scratch / "none"); }),
            "cannot read " + (scratch / "none").string() + ": No such file or directory");
  EXPECT_EQ(problem_of([&] { read_file(scratch.path()); }),
            "cannot read " + scratch.path().string() + ": Is a directory");
}

TEST(ReadFile, WhatIsNoFileIsAnErrorAndNeverWaitedFor) {
  const Scratch scratch;
  ASSERT_EQ(::mkfifo((scratch / "fifo").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", scratch / "zero");
  for (const char* name : {"fifo", "zero"})
    EXPECT_EQ(problem_of([&] { read_file(scratch / name); }),
              "cannot read " + (scratch / name).string() + ": it is no regular file");
}

TEST(WriteFileAtomic, ReplacesAndLeavesNothingBeside) {
  const Scratch scratch;
  write_file_atomic(scratch / "f", "old and longer");
  write_file_atomic(scratch / "f", "new");
  EXPECT_EQ(read_file(scratch / "f"), "new");
  EXPECT_THAT(names_in(scratch.path()), ElementsAre("f"));
}

TEST(WriteFileAtomic, ALinkInItsWayIsNotFollowed) {
  const Scratch scratch;
  write_file_atomic(scratch / "victim", "untouched");
  const std::string part = (scratch / "f").string() + ".part" + std::to_string(::gettid());
  ASSERT_EQ(::symlink((scratch / "victim").c_str(), part.c_str()), 0);
  write_file_atomic(scratch / "f", "new");
  EXPECT_EQ(read_file(scratch / "victim"), "untouched");
  EXPECT_EQ(read_file(scratch / "f"), "new");
  EXPECT_THAT(names_in(scratch.path()), ElementsAre("f", "victim"));
}

TEST(WriteFileAtomic, InAFolderThatIsGone) {
  const Scratch scratch;
  EXPECT_THAT(problem_of([&] { write_file_atomic(scratch / "gone/f", "x"); }),
              HasSubstr("No such file or directory"));
}

TEST(WriteFileAtomic, ReadersSeeOldOrNewNeverAMixture) {
  const Scratch scratch;
  const std::string a(100'000, 'a'), b(50'000, 'b');
  write_file_atomic(scratch / "f", a);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; i < 30; ++i) write_file_atomic(scratch / "f", i % 2 == 0 ? b : a);
    stop = true;
  });
  int reads = 0;
  do {
    const std::string seen = read_file(scratch / "f");
    EXPECT_TRUE(seen == a || seen == b) << seen.size();
    ++reads;
  } while (!stop);
  writer.join();
  EXPECT_GT(reads, 0);
}

TEST(WriteFileAtomic, AFullDiskKeepsTheOldContent) {
  const Scratch scratch;
  if (::mount("tmpfs", scratch.path().c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "cannot mount a small file system here";
  write_file_atomic(scratch / "f", "old");
  try {
    write_file_atomic(scratch / "f", std::string(1 << 20, 'x'));
    ADD_FAILURE() << "a megabyte went into 64 KiB";
  } catch (const Error& e) {
    EXPECT_TRUE(is_disk_full(e)) << e.what();
  }
  EXPECT_EQ(read_file(scratch / "f"), "old");
  EXPECT_THAT(names_in(scratch.path()), ElementsAre("f"));
  ::umount2(scratch.path().c_str(), MNT_DETACH);
}

TEST(CreateFileExclusive, OfManyOneWins) {
  const Scratch scratch;
  std::atomic<int> winners{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      if (create_file_exclusive(scratch / "f", std::to_string(i))) ++winners;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(winners, 1);
  EXPECT_FALSE(create_file_exclusive(scratch / "f", "later"));
  EXPECT_EQ(read_file(scratch / "f").size(), 1u);
  EXPECT_THROW(create_file_exclusive(scratch / "gone/f", ""), Error);
}

TEST(Folders, MadeWithParentsOrExclusively) {
  const Scratch scratch;
  make_folders(scratch / "a/b/c");
  make_folders(scratch / "a/b/c");
  EXPECT_TRUE(fs::is_directory(scratch / "a/b/c"));
  EXPECT_TRUE(make_folder_exclusive(scratch / "d"));
  EXPECT_FALSE(make_folder_exclusive(scratch / "d"));
  EXPECT_THROW(make_folder_exclusive(scratch / "no/parent"), Error);
  write_file_atomic(scratch / "file", "");
  EXPECT_THAT(problem_of([&] { make_folders(scratch / "file/below"); }), HasSubstr("Not a directory"));
}

TEST(AppendFile, GoesOnWhereTheFileEnds) {
  const Scratch scratch;
  {
    AppendFile file(scratch / "f");
    EXPECT_EQ(file.size(), 0u);
    file.append("one\n");
    file.sync();
    file.sync();
    EXPECT_EQ(file.size(), 4u);
  }
  AppendFile again(scratch / "f");
  EXPECT_EQ(again.size(), 4u);
  again.append("two\n");
  AppendFile moved = std::move(again);
  moved.append("three\n");
  EXPECT_EQ(moved.size(), 14u);
  EXPECT_EQ(read_file(scratch / "f"), "one\ntwo\nthree\n");
}

TEST(AppendFile, AppendsOfSeveralProcessesStayWhole) {
  const Scratch scratch;
  std::vector<std::thread> threads;
  for (char c = 'a'; c < 'e'; ++c)
    threads.emplace_back([&, c] {
      AppendFile file(scratch / "f");
      for (int i = 0; i < 50; ++i) file.append(std::string(3000, c) + "\n");
    });
  for (std::thread& thread : threads) thread.join();
  const std::string all = read_file(scratch / "f");
  ASSERT_EQ(all.size(), 4u * 50 * 3001);
  for (std::size_t at = 0; at < all.size(); at += 3001)
    EXPECT_EQ(all.substr(at, 3001), std::string(3000, all[at]) + "\n");
}

TEST(AppendFile, AFullDiskIsToldApart) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  AppendFile file("/dev/full");
  try {
    file.append("x");
    ADD_FAILURE() << "/dev/full took a byte";
  } catch (const Error& e) {
    EXPECT_TRUE(is_disk_full(e)) << e.what();
    EXPECT_THAT(e.what(), HasSubstr("/dev/full"));
  }
}

// The mode of everything that this module makes, under a umask.
std::string modes_under(mode_t mask) {
  const Scratch scratch;
  const mode_t before = ::umask(mask);
  write_file_atomic(scratch / "atomic", "x");
  create_file_exclusive(scratch / "exclusive", "x");
  AppendFile(scratch / "append").append("x");
  make_folder_exclusive(scratch / "folder");
  make_folders(scratch / "folders");
  const FileLock lock(scratch / "lock");
  ::umask(before);
  std::string modes;
  for (const char* name : {"atomic", "exclusive", "append", "folder", "folders", "lock"}) {
    struct stat info {};
    EXPECT_EQ(::stat((scratch / name).c_str(), &info), 0) << name;
    char text[32];
    std::snprintf(text, sizeof text, "%s %o, ", name, static_cast<unsigned>(info.st_mode & 0777));
    modes += text;
  }
  return modes;
}

TEST(Modes, FollowTheUmaskExceptForLocks) {
  EXPECT_EQ(modes_under(022), "atomic 644, exclusive 644, append 644, folder 755, folders 755, lock 666, ");
  EXPECT_EQ(modes_under(002), "atomic 664, exclusive 664, append 664, folder 775, folders 775, lock 666, ");
  EXPECT_EQ(modes_under(077), "atomic 600, exclusive 600, append 600, folder 700, folders 700, lock 666, ");
}

TEST(FileLock, ExcludesAnotherProcessAndDiesWithIt) {
  const Scratch scratch;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const FileLock lock(scratch / "lock");
    [[maybe_unused]] const ssize_t n = ::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  std::atomic<bool> have{false};
  std::thread waiter([&] {
    const FileLock lock(scratch / "lock");
    have = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(have);
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  waiter.join();
  EXPECT_TRUE(have);
  EXPECT_EQ(fs::status(scratch / "lock").permissions() & fs::perms::others_write, fs::perms::others_write);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(FileLock, ATrySaysThatAnotherHoldsIt) {
  const Scratch scratch;
  std::optional<FileLock> first = FileLock::try_lock(scratch / "lock");
  ASSERT_TRUE(first);
  EXPECT_FALSE(FileLock::try_lock(scratch / "lock"));
  EXPECT_TRUE(FileLock::try_lock(scratch / "other"));
  first.reset();
  EXPECT_TRUE(FileLock::try_lock(scratch / "lock"));
  EXPECT_THROW(FileLock::try_lock(scratch / "no" / "lock"), Error);
}

TEST(ProgramFolder, HoldsThisProgram) { EXPECT_TRUE(fs::exists(program_folder() / "base_test")); }

}  // namespace
}  // namespace warpsmith
