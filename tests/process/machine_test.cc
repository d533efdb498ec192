#include "warpsmith/process/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "warpsmith/base/error.h"
#include "warpsmith/process/child.h"

namespace warpsmith::process {
namespace {

using testing::HasSubstr;

const Fact& fact(const std::vector<Fact>& facts, const std::string& name) {
  const auto it = std::find_if(facts.begin(), facts.end(), [&](const Fact& f) { return f.name == name; });
  if (it == facts.end()) throw std::runtime_error("no fact " + name);
  return *it;
}

TEST(Machine, AllowedCpusFollowTheAffinity) {
  // In a thread of its own: the mask belongs to the thread.
  std::thread([] {
    const std::vector<int> all = allowed_cpus();
    ASSERT_FALSE(all.empty());
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(all.back()), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_THAT(allowed_cpus(), testing::ElementsAre(all.back()));
  }).join();
}

TEST(Machine, CpusNearOneHoldIt) {
  const std::vector<int> all = allowed_cpus(), near = cpus_near(all.back());
  EXPECT_THAT(near, testing::Contains(all.back()));
  EXPECT_THAT(all, testing::IsSupersetOf(near));
}

TEST(Machine, ThreadsAreKeptOnOneProcessor) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::thread([] { ::pause(); }).detach();
    for (;;) ::pause();
  }
  const int cpu = allowed_cpus().back();
  keep_threads_on(child, cpu);
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(child, sizeof set, &set), 0);
  EXPECT_EQ(CPU_COUNT(&set), 1);
  EXPECT_TRUE(CPU_ISSET(static_cast<std::size_t>(cpu), &set));
  EXPECT_THROW(keep_threads_on(child, -1), Error);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_THROW(keep_threads_on(child, cpu), Error) << "it is gone";
}

TEST(Machine, MemoryIsPlausible) {
  EXPECT_GT(available_memory(), 1ull << 26);
  EXPECT_LT(available_memory(), 1ull << 50);
}

TEST(Machine, FactsForDoctor) {
  const std::vector<Fact> facts = machine_facts("/tmp");
  for (const char* name :
       {"cpu", "cores", "memory", "kernel", "sandbox", "bubblewrap", "seccomp", "landlock", "disk",
        "compiler g++", "compiler clang", "compiler nvcc", "python3", "gpu", "slurm"})
    EXPECT_FALSE(fact(facts, name).value.empty()) << name;
  EXPECT_EQ(fact(facts, "cpu").value, cpu_model());
  EXPECT_THAT(fact(facts, "disk").value, HasSubstr("free in /tmp"));
  EXPECT_EQ(fact(facts, "seccomp").ok, try_sandbox(SandboxLevel::kLandlock).works);
  for (const Fact& f : facts)
    EXPECT_TRUE(f.ok || !f.hint.empty()) << f.name << " lacks something and does not say what to do";
}

TEST(Machine, AFolderThatWillBeMadeLiesOnTheDiskOfTheOneAbove) {
  const std::vector<Fact> facts = machine_facts("/tmp/not/made/yet");
  EXPECT_THAT(fact(facts, "disk").value, HasSubstr("free in /tmp, where /tmp/not/made/yet will be made"));
}

TEST(Machine, AFolderThatCannotBeIsNamed) {
  const std::vector<Fact> facts = machine_facts("/proc/self/status/folder");
  EXPECT_FALSE(fact(facts, "disk").ok);
  EXPECT_THAT(fact(facts, "disk").value, HasSubstr("/proc/self/status/folder"));
}

}  // namespace
}  // namespace warpsmith::process
