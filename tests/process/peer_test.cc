// Stopping a process at the other end of a socket.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "warpsmith/process/descriptors.h"

namespace warpsmith::process {
namespace {

class PeerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0)
      for (;;) ::pause();
  }
  void TearDown() override { end(); }

  void end() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
  }

  // As the system has it, "T" while stopped; waits some seconds for it to be `wanted`.
  std::string state(const std::string& wanted) const {
    std::string found;
    for (int i = 0; i < 500 && found != wanted; ++i) {
      std::ifstream file("/proc/" + std::to_string(child_) + "/stat");
      std::string number, name;
      file >> number >> name >> found;
      if (found != wanted) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return found;
  }

  pid_t child_ = -1;
};

TEST_F(PeerTest, StopsAndGoesOn) {
  const Peer peer(child_);
  EXPECT_EQ(peer.pid(), child_);
  EXPECT_EQ(state("S"), "S");
  peer.stop();
  EXPECT_EQ(state("T"), "T");
  peer.go_on();
  EXPECT_EQ(state("S"), "S");
}

TEST_F(PeerTest, WhatWasMovedFromIsNobody) {
  Peer first(child_);
  Peer second(std::move(first));
  first.stop();  // NOLINT(bugprone-use-after-move): that is what this is about
  EXPECT_EQ(first.pid(), 0);
  EXPECT_EQ(state("S"), "S");
  first = std::move(second);
  EXPECT_EQ(second.pid(), 0);
  first.stop();
  EXPECT_EQ(state("T"), "T");
}

TEST_F(PeerTest, OneThatHasEndedIsNobody) {
  const Peer peer(child_);
  const pid_t number = child_;
  end();
  peer.stop();  // goes nowhere
  const Peer late(number);
  EXPECT_EQ(late.pid(), 0);
  late.stop();
  Peer().stop();
}

TEST(Fd, IsClosedWithItsOwner) {
  int number = -1;
  {
    Fd first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(first);
    number = first.get();
    Fd second(std::move(first));
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(second.get(), number);
    first = std::move(second);
    EXPECT_EQ(first.get(), number);
    EXPECT_GE(::fcntl(number, F_GETFD), 0);
  }
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

}  // namespace
}  // namespace warpsmith::process
