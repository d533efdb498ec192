// Signals that ask for an orderly end: what comes twice at once is one, what comes again later ends the
// program.
#include "warpsmith/process/stop_signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace warpsmith::process {
namespace {

using namespace std::chrono_literals;

// How a child ends to which SIGINT comes twice, the second time `pause` after the first was heard.
int ending_of_two(std::chrono::milliseconds pause) {
  const pid_t child = ::fork();
  if (child == 0) {
    const StopSignals signals;
    ::raise(SIGINT);
    if (!StopSignals::asked() || !StopSignals::asked(SIGINT) || StopSignals::asked(SIGTERM)) ::_exit(1);
    std::this_thread::sleep_for(pause);
    ::raise(SIGINT);
    ::_exit(7);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(StopSignals, OneThatIsSentTwiceAtOnceAsksOnce) {
  const int status = ending_of_two(0ms);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(StopSignals, OneThatComesAgainEndsTheProgram) {
  const int status = ending_of_two(1100ms);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGINT);
}

TEST(StopSignals, WhenItIsGoneAllIsAsBefore) {
  ::signal(SIGUSR1, SIG_IGN);
  {
    const StopSignals signals({SIGUSR1});
    EXPECT_FALSE(StopSignals::asked());
    ::raise(SIGUSR1);
    ::raise(SIGHUP);
    EXPECT_TRUE(StopSignals::asked(SIGUSR1) && StopSignals::asked(SIGHUP));
  }
  EXPECT_FALSE(StopSignals::asked());
  ::raise(SIGUSR1);
  EXPECT_FALSE(StopSignals::asked());
  ::signal(SIGUSR1, SIG_DFL);
}

}  // namespace
}  // namespace warpsmith::process
