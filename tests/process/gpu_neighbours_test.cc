// Who else works on a GPU, with a library in place of NVML.
#include "warpsmith/process/gpu_neighbours.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "warpsmith/process/child.h"
#include "with_variable.h"

namespace warpsmith::process {
namespace {

constexpr const char* kNvmlOfTests = WARPSMITH_BINARY_DIR "/tests/libfake_nvml.so";

// A use that ended so many seconds from now.
std::string use(int pid, int percent, double seconds) {
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  return std::to_string(pid) + " " + std::to_string(percent) + " " +
         std::to_string(now.count() + static_cast<long long>(seconds * 1e6)) + ";";
}

class GpuNeighboursTest : public testing::Test {
 protected:
  // What is seen where NVML tells of these uses.
  std::string seen(const std::string& uses, const std::string& processes) {
    const WithVariable context("FAKE_PROCESSES", processes.c_str()), none("FAKE_USES", "");
    const auto watch = GpuWatch::open("GPU-fake-0");
    GpuNeighbours neighbours(*watch);
    can_tell_ = neighbours.can_tell();
    neighbours.begin();
    const WithVariable later("FAKE_USES", uses.c_str());
    return neighbours.seen();
  }
  std::string seen(const std::string& uses) { return seen(uses, "1 " + std::to_string(::getpid())); }

  const WithVariable library_{"WARPSMITH_NVML", kNvmlOfTests}, gpus_{"FAKE_GPUS", "NVIDIA H100 9.0"};
  bool can_tell_ = false;
};

TEST_F(GpuNeighboursTest, AnotherProcessThatWorksThereIsSeen) {
  // Our parent is none of ours, unless it is a program of Warpsmith's.
  const std::string words = seen(use(::getppid(), 40, 1));
  EXPECT_TRUE(can_tell_);
  EXPECT_EQ(words.find("process " + std::to_string(::getppid()) + " (`"), 0u) << words;
  EXPECT_NE(words.find("worked on this GPU, too"), std::string::npos);
}

TEST_F(GpuNeighboursTest, WeAreNone) {
  Child child({.argv = {"/bin/sleep", "60"}});
  EXPECT_EQ(seen(use(::getpid(), 90, 1) + use(child.pid(), 90, 1)), "");
  child.kill();
  child.wait();
}

TEST_F(GpuNeighboursTest, WhatWasBeforeAndWhatIsLittleDoesNotCount) {
  EXPECT_EQ(seen(use(::getppid(), 40, -1)), "");
  EXPECT_EQ(seen(use(::getppid(), 40, 0.05)), "") << "it may have ended as we began";
  EXPECT_EQ(seen(use(::getppid(), 4, 1)), "");
}

TEST_F(GpuNeighboursTest, OneThatHasEndedIsNotBlamed) {
  Child child({.argv = {"/bin/true"}});
  const int pid = child.pid();
  child.wait();
  EXPECT_EQ(seen(use(pid, 90, 1)), "") << "it may have been a child of ours";
}

// The driver's numbers of processes are the machine's.
TEST_F(GpuNeighboursTest, InAContainerItCannotTell) {
  EXPECT_EQ(seen(use(::getppid(), 40, 1), "1"), "");
  EXPECT_FALSE(can_tell_);
}

TEST_F(GpuNeighboursTest, ManyProcessesAreAllRead) {
  std::string uses;
  for (int i = 0; i < 40; ++i) uses += use(::getpid(), 1, 1);
  EXPECT_NE(seen(uses + use(::getppid(), 50, 1)), "");
}

TEST(GpuNeighbours, WhereTheGpuDoesNotTell) {
  const WithVariable library("WARPSMITH_NVML", kNvmlOfTests), gpus("FAKE_GPUS", "NVIDIA H100 9.0");
  const auto watch = GpuWatch::open("GPU-fake-0");
  EXPECT_FALSE(GpuNeighbours(*watch).can_tell());
  EXPECT_EQ(GpuNeighbours(*watch).seen(), "");
}

}  // namespace
}  // namespace warpsmith::process
