// What this machine has and lacks, for `warpsmith doctor` and for the facts that go with a measurement.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace warpsmith::process {

struct Fact {
  std::string name;   // "cpu", "memory", "sandbox", "compiler g++", …
  std::string value;  // for people; "none" or "not found" where there is nothing
  bool ok = true;     // false: something of Warpsmith does not work, or works less well, without it
  std::string hint;   // what to do about it, or what it means; may be empty
};

// Takes some tenths of a second: it starts compilers and sandboxes to see whether they work. `folder`: where
// runs are to be written.
std::vector<Fact> machine_facts(const std::filesystem::path& folder);

// A TCP port that nobody has: until somebody binds it. Throws Error where there is none.
int free_port();
std::string host_name();                               // "" where the kernel does not say
std::map<std::string, std::string> our_environment();  // variables of this process
std::string cpu_model();                               // as the kernel names it; "unknown" where it does not
std::vector<int> allowed_cpus();                       // those that this process may use
// Of these, those that share their memory (NUMA node) with `cpu`; all of them where the kernel does not say.
std::vector<int> cpus_near(int cpu);
// From now on all threads that a process has, and those that they start, run on `cpu` alone. Throws Error.
void keep_threads_on(int pid, int cpu);
// Memory that new processes may take: what the kernel has available, or what the control group leaves where
// that is less.
std::uint64_t available_memory();
int landlock_version();  // 0: none
// Whether there is such a process, ours or not. One that has ended, and that nobody has waited for, is there.
bool process_lives(int pid);

}  // namespace warpsmith::process
