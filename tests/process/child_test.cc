// A child without a sandbox: its ending, its output, its limits, its tree.
#include "warpsmith/process/child.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"

namespace warpsmith::process {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

std::string misbehave() { return (program_folder() / "misbehave").string(); }

ChildSpec command(std::vector<std::string> argv) {
  ChildSpec spec;
  spec.argv = std::move(argv);
  spec.limits.wall_s = 20;
  return spec;
}

ChildSpec shell(const std::string& script) { return command({"/bin/sh", "-c", script}); }

// Waits until a process is gone (a zombie has gone).
bool gone(pid_t pid, std::chrono::milliseconds within = 2s) {
  const auto until = std::chrono::steady_clock::now() + within;
  do {
    std::string stat;
    try {
      stat = read_file("/proc/" + std::to_string(pid) + "/stat");
    } catch (const Error&) {
      return true;
    }
    if (stat.substr(stat.rfind(')')).starts_with(") Z")) return true;
    std::this_thread::sleep_for(10ms);
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

pid_t read_pid(const fs::path& file) {
  for (int i = 0; i < 500; ++i) {
    if (fs::exists(file))
      if (const std::string text = read_file(file); text.ends_with("\n")) return std::stoi(text);
    std::this_thread::sleep_for(10ms);
  }
  return -1;
}

TEST(Child, ExitCodeAndBothStreams) {
  const ChildResult r = run_child(shell("echo out; echo err >&2; exit 7"));
  EXPECT_EQ(r.ending, Ending::kExited) << r.problem;
  EXPECT_EQ(r.exit_code, 7);
  EXPECT_EQ(r.out, "out\n");
  EXPECT_EQ(r.err, "err\n");
  EXPECT_GT(r.wall_s, 0);
}

TEST(Child, SignalsAreTold) {
  for (const auto& [mode, signal] : std::vector<std::pair<std::string, int>>{
           {"abort", SIGABRT}, {"segv", SIGSEGV}, {"divide", SIGFPE}, {"stack", SIGSEGV}}) {
    const ChildResult r = run_child(command({misbehave(), mode, "0"}));
    EXPECT_EQ(r.ending, Ending::kSignaled) << mode;
    EXPECT_EQ(r.signal, signal) << mode;
  }
}

TEST(Child, InputThenEndOfFile) {
  ChildSpec spec = command({"/bin/cat"});
  spec.input = std::string(300'000, 'a') + "z";
  EXPECT_EQ(run_child(spec).out, spec.input);
  spec.input.clear();
  EXPECT_EQ(run_child(spec).out, "");
}

TEST(Child, NotStarted) {
  const auto problem = [](const ChildSpec& spec) {
    const ChildResult r = run_child(spec);
    EXPECT_EQ(r.ending, Ending::kNotStarted);
    EXPECT_THROW(Child child(spec), Error);
    return r.problem;
  };
  EXPECT_THAT(problem(command({"/nowhere/program"})), HasSubstr("program not found: /nowhere/program"));
  EXPECT_THAT(problem(command({"no-such-program-here"})),
              HasSubstr("program not found: no-such-program-here"));
  EXPECT_THAT(problem(command({"/etc/passwd"})), HasSubstr("not a program that may be run: /etc/passwd"));
  EXPECT_THAT(problem(command({})), HasSubstr("no program to start"));
  ChildSpec lost = shell("true");
  lost.folder = "/nowhere";
  EXPECT_THAT(problem(lost), HasSubstr("/nowhere"));
  const Scratch scratch;  // a file that looks like a program and is none
  write_file_atomic(scratch / "junk",
                    "\x7f"
                    "ELF nonsense");
  fs::permissions(scratch / "junk", fs::perms::owner_all);
  EXPECT_THAT(problem(command({scratch / "junk"})), HasSubstr("Exec format error"));
}

TEST(Child, FindsProgramsByPath) { EXPECT_EQ(run_child(command({"echo", "x"})).out, "x\n"); }

TEST(Child, FolderAndEnvironment) {
  const Scratch scratch;
  ChildSpec spec = shell("pwd; echo $NAME; echo ${HOME-none}");
  spec.folder = scratch.path();
  spec.environment = std::map<std::string, std::string>{{"NAME", "va lue"}};
  EXPECT_EQ(run_child(spec).out, fs::canonical(scratch.path()).string() + "\nva lue\nnone\n");
  ::setenv("WARPSMITH_TEST_INHERITED", "yes", 1);
  EXPECT_EQ(run_child(shell("echo $WARPSMITH_TEST_INHERITED")).out, "yes\n");
}

// A sanitizer sees what a search for the long one reads of the short ones.
TEST(Child, LongNamesBesideShortOnesInTheEnvironment) {
  const std::string name = "WARPSMITH_A_NAME_LONGER_THAN_ANY_OTHER_ENTRY_OF_THIS_ENVIRONMENT";
  ChildSpec spec = shell("echo $A $" + name);
  spec.environment = std::map<std::string, std::string>{{"A", "1"}, {name, "2"}};
  EXPECT_EQ(run_child(spec).out, "1 2\n");
}

TEST(Child, StandardErrorToAFileIsAppended) {
  const Scratch scratch;
  ChildSpec spec = shell("echo out; echo err >&2");
  spec.stderr_file = scratch / "log";
  run_child(spec);
  const ChildResult r = run_child(spec);
  EXPECT_EQ(r.out, "out\n");
  EXPECT_EQ(r.err, "");
  EXPECT_EQ(read_file(scratch / "log"), "err\nerr\n");
  spec.stdout_to_stderr = true;
  EXPECT_EQ(run_child(spec).out, "");
  EXPECT_EQ(read_file(scratch / "log"), "err\nerr\nout\nerr\n");
}

TEST(Child, OutputIsCutAndCounted) {
  ChildSpec spec = shell("head -c 100000 /dev/zero; head -c 10 /dev/zero >&2");
  spec.limits.output_bytes = 1000;
  const ChildResult r = run_child(spec);
  EXPECT_EQ(r.ending, Ending::kExited);
  EXPECT_EQ(r.out.size(), 1000u);
  EXPECT_EQ(r.out_dropped, 99'000u);
  EXPECT_EQ(r.err.size(), 10u);
  EXPECT_EQ(r.err_dropped, 0u);
}

TEST(Child, FloodOfOutputIsEnded) {
  ChildSpec spec = command({misbehave(), "flood"});
  spec.limits.output_bytes = 1000;
  const ChildResult r = run_child(spec);
  EXPECT_EQ(r.ending, Ending::kOutputLimit);
  EXPECT_EQ(r.out.size(), 1000u);
}

TEST(Child, EndlessLoopMeetsTheWallClock) {
  ChildSpec spec = command({misbehave(), "loop"});
  spec.limits.wall_s = 0.3;
  const ChildResult r = run_child(spec);
  EXPECT_EQ(r.ending, Ending::kTimedOut);
  EXPECT_GE(r.wall_s, 0.3);
  EXPECT_LT(r.wall_s, 2.5);
}

TEST(Child, EndlessLoopMeetsTheCpuLimit) {
  ChildSpec spec = command({misbehave(), "loop"});
  spec.limits.cpu_s = 1;
  const ChildResult r = run_child(spec);
  EXPECT_EQ(r.ending, Ending::kTimedOut);
  EXPECT_EQ(r.signal, SIGXCPU);
  EXPECT_GT(r.cpu_s, 0.7);  // the scheduler counts in ticks
}

TEST(Child, MemoryLimitOfTheAddressSpace) {
  ChildSpec spec = command({misbehave(), "allocate", std::to_string(1ull << 40)});
  spec.limits.memory_bytes = 1ull << 30;
  const ChildResult r = run_child(spec);
  EXPECT_EQ(r.ending, Ending::kExited);
  EXPECT_EQ(r.exit_code, ENOMEM);
}

TEST(Child, MemoryLimitOfTheTree) {
  ChildResult r = run_child(shell("'" + misbehave() + "' allocate 100000000"));
  EXPECT_GT(r.peak_memory_bytes, 100'000'000u);
  // Two that are under the limit each and over it together.
  ChildSpec spec = shell("'" + misbehave() + "' allocate_and_wait 60000000 & '" + misbehave() +
                         "' allocate_and_wait 60000000");
  spec.limits.tree_memory_bytes = 100'000'000;
  r = run_child(spec);
  EXPECT_EQ(r.ending, Ending::kMemoryLimit);
  EXPECT_LT(r.wall_s, 5);
  EXPECT_GT(r.peak_memory_bytes, 100'000'000u);
}

TEST(Child, FileSizeLimit) {
  const Scratch scratch;
  ChildSpec spec = command({misbehave(), "fill_file", scratch / "big"});
  spec.limits.file_bytes = 10 << 20;
  const ChildResult r = run_child(spec);
  EXPECT_EQ(r.ending, Ending::kOutputLimit);
  EXPECT_EQ(r.signal, SIGXFSZ);
  EXPECT_EQ(fs::file_size(scratch / "big"), 10u << 20);
}

TEST(Child, AffinityIsThatOfTheSpec) {
  ChildSpec spec = shell("grep Cpus_allowed_list /proc/self/status");
  spec.cpus = {0};
  EXPECT_EQ(run_child(spec).out, "Cpus_allowed_list:\t0\n");
}

TEST(Child, DescriptorsStayClosedUnlessKept) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);  // without close-on-exec, as careless libraries do
  ChildSpec spec = command({misbehave(), "is_open", std::to_string(ends[1])});
  EXPECT_EQ(run_child(spec).exit_code, EBADF);
  spec.argv = {misbehave(), "write_fd", std::to_string(ends[1])};
  spec.keep_fds = {ends[1]};
  EXPECT_EQ(run_child(spec).exit_code, 0);
  char text[8] = {};
  EXPECT_EQ(::read(ends[0], text, sizeof text), 5);
  EXPECT_STREQ(text, "hello");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Child, NoCoreFiles) { EXPECT_EQ(run_child(shell("ulimit -c")).out, "0\n"); }

TEST(Child, SignalsOfOursAreNotInherited) {
  // The kernel's numbers; 32 and 33 are those that libc keeps for itself.
  const auto set = [](int number, void (*handler)(int)) {
    const struct {
      void (*handler)(int);
      unsigned long flags;
      void (*restorer)();
      unsigned long mask;
    } action{handler, 0, nullptr, 0};
    ASSERT_EQ(::syscall(SYS_rt_sigaction, number, &action, nullptr, sizeof action.mask), 0);
  };
  for (const int number : {SIGHUP, SIGPIPE, 32, 33, 34, 64}) set(number, SIG_IGN);
  EXPECT_THAT(run_child(shell("grep -E 'SigBlk|SigIgn' /proc/self/status")).out,
              testing::MatchesRegex("SigBlk:\t0+\nSigIgn:\t0+\n"));
  for (const int number : {SIGHUP, SIGPIPE, 32, 33, 34, 64}) set(number, SIG_DFL);
}

// nohup-like starters and some daemons ignore it: then the kernel forgets how our children ended.
TEST(Child, EndsAreToldWhereTheirSignalIsIgnored) {
  std::signal(SIGCHLD, SIG_IGN);
  const ChildResult exited = run_child(shell("exit 3"));
  const ChildResult killed = run_child(shell("kill -SEGV $$"));
  std::signal(SIGCHLD, SIG_DFL);
  EXPECT_EQ(exited.exit_code, 3);
  EXPECT_EQ(killed.signal, SIGSEGV);
}

TEST(Child, BesideUs) {
  Child child(shell("sleep 0.2; echo late"));
  EXPECT_TRUE(child.running());
  EXPECT_GT(child.pid(), 0);
  pollfd event{child.event_fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&event, 1, 0), 0);
  EXPECT_EQ(::poll(&event, 1, 5000), 1);
  EXPECT_FALSE(child.running());
  const ChildResult r = child.wait();
  EXPECT_EQ(r.ending, Ending::kExited);
  EXPECT_EQ(r.out, "late\n");
  EXPECT_EQ(child.wait().out, "late\n");
}

TEST(Child, StaysWhenTheThreadThatStartedItEnds) {
  std::optional<Child> child;
  std::thread([&] { child.emplace(shell("sleep 0.3; echo alive")); }).join();
  EXPECT_EQ(child->wait().out, "alive\n");
}

TEST(Child, ManyAtOnceFromManyThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const std::string word = std::to_string(t) + "." + std::to_string(i);
        if (run_child(command({"/bin/echo", word})).out == word + "\n") ++good;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 80);
}

TEST(Child, TerminateAsksAndKillForces) {
  Child polite(shell("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done"));
  std::this_thread::sleep_for(200ms);
  polite.terminate();
  const ChildResult bye = polite.wait();
  EXPECT_EQ(bye.ending, Ending::kExited);
  EXPECT_THAT(bye.out, HasSubstr("bye"));

  Child plain(shell("sleep 100"));
  plain.terminate();
  EXPECT_EQ(plain.wait().ending, Ending::kStopped);

  Child stubborn(command({misbehave(), "ignore_term"}));
  std::this_thread::sleep_for(200ms);
  stubborn.terminate();
  std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(stubborn.running());
  stubborn.kill();
  EXPECT_EQ(stubborn.wait().ending, Ending::kStopped);
}

TEST(Child, TheDestructorEndsTheTree) {
  const Scratch scratch;
  pid_t escapee = -1;
  {
    const Child child(shell("'" + misbehave() + "' escape " + (scratch / "pid").string() + "; sleep 100"));
    escapee = read_pid(scratch / "pid");
    ASSERT_GT(escapee, 0);
    EXPECT_EQ(::kill(escapee, 0), 0);
  }
  EXPECT_TRUE(gone(escapee, 0ms));
}

TEST(Child, WhatItLeavesBehindEndsWithIt) {
  const Scratch scratch;
  const ChildResult r = run_child(command({misbehave(), "escape", scratch / "pid"}));
  EXPECT_EQ(r.ending, Ending::kExited);
  EXPECT_TRUE(gone(read_pid(scratch / "pid"), 0ms));
}

TEST(Child, ForkBombIsBounded) {
  ChildSpec spec = command({misbehave(), "fork_bomb"});
  spec.limits.processes = 40;
  const ChildResult r = run_child(spec);
  EXPECT_EQ(r.ending, Ending::kExited) << r.problem;
  EXPECT_GT(std::stoi(r.out), 0);
  EXPECT_LE(std::stoi(r.out), 40);
  EXPECT_LT(r.wall_s, 10);
}

TEST(Child, ForkBombBelowAnotherGuardIsBounded) {
  const ChildResult r = run_child(command({misbehave(), "nested_fork_bomb"}));
  EXPECT_EQ(r.ending, Ending::kExited) << r.problem;
  EXPECT_EQ(r.out, "more than 20 processes\n");
  EXPECT_LT(r.wall_s, 15);
}

TEST(Child, OrdinaryForksAreNotInTheWayOfTheLimit) {
  ChildSpec spec = shell("i=0; while [ $i -lt 300 ]; do /bin/true || exit 1; i=$((i+1)); done");
  spec.limits.processes = 10;
  const ChildResult r = run_child(spec);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  spec = shell("for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do sleep 5 & done; echo over");
  spec.limits.processes = 10;
  EXPECT_THAT(run_child(spec).err, HasSubstr("fork"));
}

// A process of our own kind that runs a child and is then killed.
class Killed : public testing::Test {
 protected:
  // Forks a copy that runs `script` by the module, from a second thread, and waits for the pid file.
  pid_t start(const std::string& script, const std::function<void()>& first = {}) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      if (first) first();
      std::thread([&] { run_child(shell(script)); }).join();
      ::_exit(0);
    }
    return pid;
  }
  Scratch scratch_;
};

TEST_F(Killed, TheControllerTakesItsTreeAlong) {
  const fs::path plain = scratch_ / "plain", escaped = scratch_ / "escaped";
  const pid_t controller = start("echo $$ > " + plain.string() + "; '" + misbehave() + "' escape " +
                                 escaped.string() + "; sleep 100");
  const pid_t child = read_pid(plain), grandchild = read_pid(escaped);
  ASSERT_GT(grandchild, 0);
  ::kill(controller, SIGKILL);
  ::waitpid(controller, nullptr, 0);
  EXPECT_TRUE(gone(child));
  EXPECT_TRUE(gone(grandchild));
}

TEST_F(Killed, TheGuardTakesItsChildAlong) {
  const fs::path plain = scratch_ / "plain", escaped = scratch_ / "escaped", result = scratch_ / "result";
  const pid_t controller = ::fork();
  if (controller == 0) {
    become_subreaper();
    const ChildResult r = run_child(shell("echo $PPID > " + plain.string() + "; '" + misbehave() +
                                          "' escape " + escaped.string() + "; sleep 100"));
    write_file_atomic(result, std::to_string(static_cast<int>(r.ending)) + " " + r.problem + "\n");
    ::_exit(0);
  }
  const pid_t guard = read_pid(plain), grandchild = read_pid(escaped);
  ASSERT_GT(grandchild, 0);
  ::kill(guard, SIGKILL);
  EXPECT_TRUE(gone(grandchild));
  ::waitpid(controller, nullptr, 0);
  EXPECT_EQ(read_file(result),
            std::to_string(static_cast<int>(Ending::kSignaled)) + " its guard was killed\n");
}

// What a process that was killed did not say is no fact of this machine.
TEST(AskProgram, OneThatIsKilledIsAskedAgain) {
  const fs::path mark = fs::temp_directory_path() / ("warpsmith-asked-" + std::to_string(::getpid()));
  ChildSpec spec;
  spec.argv = {"/bin/sh", "-c", "[ -e \"$0\" ] && echo yes && exit 0; : > \"$0\"; kill -9 $$", mark.string()};
  const ChildResult result = ask_program(spec);
  fs::remove(mark);
  EXPECT_EQ(result.ending, Ending::kExited);
  EXPECT_EQ(result.out, "yes\n");
  spec.argv = {"/bin/sh", "-c", "kill -9 $$"};
  EXPECT_THROW(ask_program(spec), Error);
  spec.argv = {"/bin/sh", "-c", "exit 3"};
  EXPECT_EQ(ask_program(spec).exit_code, 3);
}

}  // namespace
}  // namespace warpsmith::process
