// What a child in a sandbox can and cannot do, at each level that this machine has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/process/child.h"
#include "warpsmith/process/machine.h"

namespace warpsmith::process {
namespace {

using testing::HasSubstr;

std::string misbehave() { return (program_folder() / "misbehave").string(); }

class Sandboxed : public testing::TestWithParam<SandboxLevel> {
 protected:
  void SetUp() override {
    const SandboxTrial trial = try_sandbox(GetParam());
    if (!trial.works) GTEST_SKIP() << to_string(GetParam()) << " is not to be had here: " << trial.problem;
    outside_ = outer_ / "outside.txt";
    write_file_atomic(outside_, "precious");
  }

  ChildSpec spec(std::vector<std::string> argv) const {
    ChildSpec out;
    out.argv = std::move(argv);
    out.folder = scratch_.path();
    out.limits.wall_s = 20;
    out.sandbox.level = GetParam();
    out.sandbox.read_write = {scratch_.path()};
    out.sandbox.read_only = {misbehave()};
    out.sandbox.allow_processes = true;
    return out;
  }

  // What became of misbehave MODE behind enter_seccomp: "exit N" or "signal N".
  std::string candidate(const std::string& mode, const std::string& argument = "") const {
    ChildSpec s = spec({misbehave(), "seccomp", mode, argument});
    s.sandbox.allow_processes = false;
    return outcome(run_child(s));
  }

  static std::string outcome(const ChildResult& r) {
    if (r.ending == Ending::kExited) return "exit " + std::to_string(r.exit_code);
    if (r.ending == Ending::kSignaled) return "signal " + std::to_string(r.signal);
    return "ending " + std::to_string(static_cast<int>(r.ending)) + " " + r.problem;
  }

  // Where Landlock is missing, its level leaves files to the file modes.
  bool files_are_guarded() const { return guards_files(GetParam()); }

  Scratch scratch_, outer_;
  fs::path outside_;
};

const std::string kViolation = "signal " + std::to_string(SIGSYS);

TEST_P(Sandboxed, RunsAndTellsHowItEnded) {
  EXPECT_EQ(outcome(run_child(spec({misbehave(), "exit", "5"}))), "exit 5");
  EXPECT_EQ(outcome(run_child(spec({misbehave(), "abort"}))), "signal " + std::to_string(SIGABRT));
  EXPECT_EQ(outcome(run_child(spec({misbehave(), "segv"}))), "signal " + std::to_string(SIGSEGV));
  EXPECT_EQ(outcome(run_child(spec({misbehave(), "divide", "0"}))), "signal " + std::to_string(SIGFPE));
  // An exit code that looks like a shell's report of a signal is an exit code.
  EXPECT_EQ(outcome(run_child(spec({misbehave(), "exit", "159"}))), "exit 159");
}

TEST_P(Sandboxed, OutputInputFolder) {
  ChildSpec s = spec({"/bin/sh", "-c", "cat; pwd; echo oops >&2"});
  s.input = "in\n";
  const ChildResult r = run_child(s);
  EXPECT_EQ(r.out, "in\n" + scratch_.path().string() + "\n");
  EXPECT_EQ(r.err, "oops\n");
}

TEST_P(Sandboxed, ProgramNotFoundIsNotStarted) {
  const ChildResult missing = run_child(spec({"/nowhere/program"}));
  EXPECT_EQ(missing.ending, Ending::kNotStarted);
  EXPECT_THAT(missing.problem, HasSubstr("program not found: /nowhere/program"));
  write_file_atomic(scratch_ / "junk",
                    "\x7f"
                    "ELF nonsense");
  fs::permissions(scratch_ / "junk", fs::perms::all);
  const ChildResult junk = run_child(spec({scratch_ / "junk"}));
  EXPECT_EQ(junk.ending, Ending::kNotStarted);
  EXPECT_THAT(junk.problem, HasSubstr("Exec format error"));
}

// NVIDIA's driver names its threads so, and does not start where it cannot.
TEST_P(Sandboxed, NamesItsOwnThreadsBesideAGpu) {
  ChildSpec s = spec({"/bin/sh", "-c", "printf named > /proc/self/task/$$/comm && cat /proc/$$/comm"});
  s.sandbox.gpu = true;
  const ChildResult own = run_child(s);
  EXPECT_EQ(own.out, "named\n") << own.err;
  if (GetParam() != SandboxLevel::kLandlock || !guards_files(GetParam())) return;
  // What the kernel lets each process of a user write of its others.
  for (const std::string whose : {"self", "$PPID"}) {
    s.argv.back() = "printf 0x33 > /proc/" + whose + "/coredump_filter";
    EXPECT_NE(outcome(run_child(s)), "exit 0") << whose;
  }
}

TEST_P(Sandboxed, WritesInItsFolderAlone) {
  EXPECT_EQ(outcome(run_child(spec({misbehave(), "write", scratch_ / "mine"}))), "exit 0");
  EXPECT_TRUE(fs::exists(scratch_ / "mine"));
  if (!files_are_guarded()) GTEST_SKIP() << "this kernel has no Landlock";
  for (const std::string& path :
       {outside_.string(), (outer_ / "new").string(), std::string("/usr/warpsmith_test"),
        std::string("/warpsmith_test"), std::string("/dev/warpsmith_test")}) {
    EXPECT_NE(outcome(run_child(spec({misbehave(), "write", path}))), "exit 0") << path;
    EXPECT_TRUE(path == outside_ || !fs::exists(path)) << path;
  }
  EXPECT_NE(outcome(run_child(spec({misbehave(), "unlink", outside_}))), "exit 0");
  EXPECT_EQ(read_file(outside_), "precious");
}

TEST_P(Sandboxed, SeesOnlyWhatItIsShown) {
  if (!files_are_guarded()) GTEST_SKIP() << "this kernel has no Landlock";
  EXPECT_NE(outcome(run_child(spec({misbehave(), "read", outside_}))), "exit 0");
  EXPECT_NE(outcome(run_child(spec({misbehave(), "read", "/etc/passwd"}))), "exit 0");
  ChildSpec shown = spec({misbehave(), "read", outside_});
  shown.sandbox.read_only = {outer_.path(), "/nowhere/at/all"};
  EXPECT_EQ(outcome(run_child(shown)), "exit 0");
  shown.argv = {misbehave(), "write", outside_};
  EXPECT_NE(outcome(run_child(shown)), "exit 0");
  // Rights of an inner folder differ from the outer one's.
  make_folders(outer_ / "in");
  shown.argv = {misbehave(), "write", outer_ / "in/file"};
  shown.sandbox.read_write.push_back(outer_ / "in");
  EXPECT_EQ(outcome(run_child(shown)), "exit 0");
}

TEST_P(Sandboxed, KeysOfOursAreNotInherited) {
  ::setenv("WARPSMITH_TEST_API_KEY", "secret", 1);
  EXPECT_EQ(run_child(spec({misbehave(), "environment", "WARPSMITH_TEST_API_KEY"})).out, "");
  EXPECT_NE(run_child(spec({misbehave(), "environment", "PATH"})).out, "");
  ChildSpec s = spec({misbehave(), "environment", "GIVEN"});
  s.environment = std::map<std::string, std::string>{{"GIVEN", "yes"}};
  EXPECT_EQ(run_child(s).out, "yes");
}

TEST_P(Sandboxed, CompilersRun) {
  if (!fs::exists("/usr/bin/g++")) GTEST_SKIP() << "no g++";
  write_file_atomic(scratch_ / "a.cc", "int f(int x) { return x + 1; }\n");
  ChildSpec s = spec({"/usr/bin/g++", "-O2", "-shared", "-fPIC", "-o", "a.so", "a.cc"});
  s.environment = std::map<std::string, std::string>{{"PATH", "/usr/bin:/bin"}, {"TMPDIR", scratch_.path()}};
  s.sandbox.seccomp_before_exec = true;
  const ChildResult r = run_child(s);
  EXPECT_EQ(outcome(r), "exit 0") << r.err;
  EXPECT_TRUE(fs::exists(scratch_ / "a.so"));
  EXPECT_GT(r.peak_memory_bytes, 1u << 20);
}

TEST_P(Sandboxed, FilterBeforeExec) {
  const auto filtered = [&](const std::string& mode, bool processes) {
    ChildSpec s = spec({misbehave(), mode});
    s.sandbox.seccomp_before_exec = true;
    s.sandbox.allow_processes = processes;
    return outcome(run_child(s));
  };
  EXPECT_EQ(filtered("socket", true), "exit " + std::to_string(EACCES));  // looking up a user may ask for one
  EXPECT_EQ(filtered("ptrace", true), kViolation);
  EXPECT_EQ(filtered("fork", true), "exit 0");
  EXPECT_EQ(filtered("threads", true), "exit 0");
  EXPECT_EQ(filtered("fork", false), kViolation);
  EXPECT_EQ(filtered("socket", false), "exit " + std::to_string(EACCES));
  EXPECT_EQ(filtered("threads", false), "exit 0");
}

// What may start processes is under no filter that looks at signals; limits of others it never sets.
TEST_P(Sandboxed, ProgramsWithProcessesAreHeldToTheirOwn) {
  const auto filtered = [&](const std::string& mode, pid_t pid) {
    ChildSpec s = spec({misbehave(), mode, std::to_string(pid)});
    s.sandbox.seccomp_before_exec = true;
    return outcome(run_child(s));
  };
  EXPECT_EQ(filtered("limit", 0), "exit 0");
  EXPECT_EQ(filtered("limit", ::getpid()), "exit " + std::to_string(EPERM));
  EXPECT_EQ(filtered("signal", ::getpid()) != "exit 0", keeps_signals_inside(GetParam()));
}

TEST_P(Sandboxed, ForeignCodeComputes) {
  EXPECT_EQ(candidate("exit", "3"), "exit 3");
  EXPECT_EQ(candidate("threads"), "exit 0");
  EXPECT_EQ(candidate("allocate", "100000000"), "exit 0");
  EXPECT_EQ(candidate("read", "/usr/bin/env"), "exit 0");
}

TEST_P(Sandboxed, ForeignCodeEndsByItsOwnFaults) {
  EXPECT_EQ(candidate("abort"), "signal " + std::to_string(SIGABRT));
  EXPECT_EQ(candidate("segv"), "signal " + std::to_string(SIGSEGV));
  EXPECT_EQ(candidate("stack"), "signal " + std::to_string(SIGSEGV));
  EXPECT_EQ(candidate("divide", "0"), "signal " + std::to_string(SIGFPE));
}

TEST_P(Sandboxed, ForeignCodeIsHeldToComputing) {
  EXPECT_EQ(candidate("fork"), kViolation);
  EXPECT_EQ(candidate("fork_bomb"), kViolation);
  EXPECT_EQ(candidate("exec"), kViolation);
  EXPECT_EQ(candidate("socket"), kViolation);
  EXPECT_EQ(candidate("ptrace"), kViolation);
  EXPECT_EQ(candidate("write", scratch_ / "x"), kViolation);
  EXPECT_EQ(candidate("write", outside_), kViolation);
  EXPECT_EQ(candidate("unlink", outside_), kViolation);
  EXPECT_EQ(candidate("kill_parent"), kViolation);
  EXPECT_EQ(candidate("kill_all"), kViolation);
  EXPECT_EQ(candidate("escape", scratch_ / "pid"), kViolation);
  EXPECT_EQ(read_file(outside_), "precious");
}

TEST_P(Sandboxed, EndlessLoop) {
  ChildSpec s = spec({misbehave(), "loop"});
  s.limits.wall_s = 0.3;
  const ChildResult r = run_child(s);
  EXPECT_EQ(r.ending, Ending::kTimedOut);
  EXPECT_LT(r.wall_s, 2.5);
}

TEST_P(Sandboxed, TerabyteAllocation) {
  ChildSpec s = spec({misbehave(), "allocate", std::to_string(1ull << 40)});
  s.limits.memory_bytes = 1ull << 30;
  EXPECT_EQ(outcome(run_child(s)), "exit " + std::to_string(ENOMEM));
}

TEST_P(Sandboxed, OutputFlood) {
  ChildSpec s = spec({misbehave(), "flood"});
  s.limits.output_bytes = 1000;
  EXPECT_EQ(run_child(s).ending, Ending::kOutputLimit);
}

TEST_P(Sandboxed, FileFlood) {
  ChildSpec s = spec({misbehave(), "fill_file", scratch_ / "big"});
  s.limits.file_bytes = 1 << 20;
  const ChildResult r = run_child(s);
  EXPECT_EQ(r.ending, Ending::kOutputLimit);
  EXPECT_EQ(r.signal, SIGXFSZ);
}

TEST_P(Sandboxed, WhatItWritesIsBoundedTogether) {
  const std::pair<const char*, const char*> rows[] = {
      {"write_files", "it has written more than 20.0 MiB of files"},
      {"write_open_files", "it has written more than 20.0 MiB of files"},
      {"write_into_closed_folder", "it has written more than 20.0 MiB of files"},
      {"write_and_end", "it has written more than 20.0 MiB of files"},
      {"make_empty_files", "it has made more than 200 files"},
      {"move_about", "it has made more than 200 files"},
      {"nest", "it has nested folders more than 64 deep"},
  };
  for (const auto& [mode, problem] : rows) {
    const Scratch folder;
    ChildSpec s = spec({misbehave(), mode, folder.path()});
    s.sandbox.read_write = {folder.path()};
    s.folder.clear();
    s.limits.scratch_bytes = 20 << 20;
    s.limits.scratch_files = 200;
    const ChildResult r = run_child(s);
    EXPECT_EQ(r.ending, Ending::kOutputLimit) << mode << ": " << outcome(r);
    EXPECT_EQ(r.problem, problem) << mode;
    EXPECT_LT(r.wall_s, 5) << mode;
  }
}

TEST_P(Sandboxed, WhatItWritesWithinItsLimitsIsItsOwnAffair) {
  const Scratch full;
  for (int i = 0; i < 300; ++i) std::ofstream(full / std::to_string(i)) << std::string(100'000, 'x');
  ChildSpec s = spec({misbehave(), "write_little", scratch_.path()});
  s.sandbox.read_write.push_back(full.path());  // what lay there before does not count
  s.limits.scratch_bytes = 20 << 20;
  s.limits.scratch_files = 200;
  const ChildResult r = run_child(s);
  EXPECT_EQ(outcome(r), "exit 0");
}

// What is moved from folder to folder all the time could be missed by every look.
TEST_P(Sandboxed, WhereFoldersChangeWithoutRestItIsStoppedForALook) {
  ChildSpec s = spec({misbehave(), "change_until_woken", scratch_.path()});
  s.limits.scratch_files = 200;
  s.limits.wall_s = 90;  // several looks in a row have to see a change
  const ChildResult r = run_child(s);
  EXPECT_EQ(outcome(r), "exit 0");
  EXPECT_EQ(r.out, "resumed\n");
  EXPECT_GT(r.wall_s, 1.9);
}

// Who stands still by a signal of its own, or of whoever started it, is not woken by that.
TEST_P(Sandboxed, WhoStandsStillAlreadyIsNotWokenByTheLook) {
  ChildSpec s = spec({"/bin/sh", "-c",
                      "sh -c 'kill -STOP $$; echo woken' & still=$!; " + misbehave() +
                          " change_until_woken .; sleep 0.3; kill -KILL $still"});
  s.limits.scratch_files = 200;
  s.limits.wall_s = 90;
  EXPECT_EQ(run_child(s).out, "resumed\n");
}

TEST_P(Sandboxed, OpenFilesAreLimited) {
  ChildSpec s = spec({misbehave(), "open_files"});
  s.limits.open_files = 100;
  EXPECT_EQ(run_child(s).out, "100 100");
}

TEST_P(Sandboxed, MemoryFoldersAreBounded) {
  if (GetParam() != SandboxLevel::kBubblewrap) GTEST_SKIP() << "only bubblewrap gives folders in memory";
  for (const char* path : {"/tmp/big", "/dev/shm/big"}) {
    const ChildResult r = run_child(spec({misbehave(), "fill_file", path}));
    EXPECT_EQ(outcome(r), "exit " + std::to_string(ENOSPC)) << path;
  }
}

TEST_P(Sandboxed, ForkBombIsBounded) {
  for (const bool filter : {false, true}) {
    ChildSpec s = spec({misbehave(), "fork_bomb"});
    s.sandbox.seccomp_before_exec = filter;
    s.limits.processes = 40;
    const ChildResult r = run_child(s);
    ASSERT_EQ(outcome(r), "exit 0");
    EXPECT_GT(std::stoi(r.out), 0);
    EXPECT_LE(std::stoi(r.out), 40);
    EXPECT_LT(r.wall_s, 10);
  }
}

TEST_P(Sandboxed, WhatEscapesToASessionOfItsOwnEndsToo) {
  // The process writes the number that it has in its own namespace; from here it is found by its command
  // line.
  const std::string mark = (scratch_ / "pid").string();
  const auto alive = [&] {
    int count = 0;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      try {
        const std::string line = read_file(entry.path() / "cmdline");
        if (line.starts_with(misbehave()) && line.find(mark) != std::string::npos) ++count;
      } catch (const Error&) {
      }
    }
    return count;
  };
  Child child(spec({"/bin/sh", "-c", "'" + misbehave() + "' escape " + mark + "; sleep 100"}));
  for (int i = 0; i < 500 && !fs::exists(mark); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_TRUE(fs::exists(mark));
  // The one that it left may not have ended yet.
  for (int i = 0; i < 500 && alive() != 1; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(alive(), 1);
  child.kill();
  EXPECT_EQ(child.wait().ending, Ending::kStopped);
  EXPECT_EQ(alive(), 0);
}

TEST_P(Sandboxed, EndsWhenTheStarterIsKilled) {
  const std::string mark = (scratch_ / "pid").string();
  const pid_t starter = ::fork();
  if (starter == 0) {
    std::thread([&] {
      run_child(spec({"/bin/sh", "-c", "'" + misbehave() + "' escape " + mark + "; sleep 100"}));
    }).join();
    ::_exit(0);
  }
  for (int i = 0; i < 500 && !fs::exists(mark); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_TRUE(fs::exists(mark));
  ::kill(starter, SIGKILL);
  ::waitpid(starter, nullptr, 0);
  bool left = true;
  for (int i = 0; i < 200 && left; ++i) {
    left = false;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      try {
        left = left || read_file(entry.path() / "cmdline").find(mark) != std::string::npos;
      } catch (const Error&) {
      }
    }
    if (left) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(left);
}

TEST_P(Sandboxed, TerminateReachesTheProgram) {
  Child child(spec({"/bin/sh", "-c", "trap 'echo bye; exit 4' TERM; while :; do sleep 0.05; done"}));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  child.terminate();
  const ChildResult r = child.wait();
  EXPECT_EQ(outcome(r), "exit 4");
  EXPECT_EQ(r.out, "bye\n");
}

INSTANTIATE_TEST_SUITE_P(Levels, Sandboxed,
                         testing::Values(SandboxLevel::kLandlock, SandboxLevel::kBubblewrap),
                         [](const auto& level) { return std::string(to_string(level.param)); });

TEST(Sandbox, ATrialSaysWhyNot) {
  for (const SandboxLevel level : {SandboxLevel::kLandlock, SandboxLevel::kBubblewrap}) {
    const SandboxTrial trial = try_sandbox(level);
    EXPECT_EQ(trial.works, trial.problem.empty()) << to_string(level);
  }
  EXPECT_TRUE(try_sandbox(SandboxLevel::kNone).works);
}

TEST(Sandbox, SignalsAreKeptByNamespacesAndNewLandlock) {
  EXPECT_TRUE(keeps_signals_inside(SandboxLevel::kBubblewrap));
  EXPECT_EQ(keeps_signals_inside(SandboxLevel::kLandlock), landlock_version() >= 6);
  EXPECT_FALSE(keeps_signals_inside(SandboxLevel::kNone));
}

TEST(Sandbox, FilesAreGuardedByMountsAndLandlock) {
  EXPECT_TRUE(guards_files(SandboxLevel::kBubblewrap));
  EXPECT_EQ(guards_files(SandboxLevel::kLandlock), landlock_version() >= 1);
  EXPECT_FALSE(guards_files(SandboxLevel::kNone));
}

TEST(Sandbox, LevelsHaveNames) {
  EXPECT_EQ(to_string(SandboxLevel::kNone), "none");
  EXPECT_EQ(to_string(SandboxLevel::kLandlock), "landlock");
  EXPECT_EQ(to_string(SandboxLevel::kBubblewrap), "bubblewrap");
}

}  // namespace
}  // namespace warpsmith::process
