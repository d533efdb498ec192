// Seccomp filters as classic BPF, written here rather than by a library: the guard and the sandboxed programs
// need a dozen rules on two architectures. x86-64 and AArch64; elsewhere building a filter fails with ENOSYS.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <vector>

namespace warpsmith::process {

using FilterProgram = std::vector<sock_filter>;

// For a process that has loaded foreign native code: computing, memory, the descriptors that it holds,
// reading files. Kills (SIGSYS) on processes, programs, sockets, changes to files, signals to others, kernel
// interfaces; what is neither known as harmless nor as hostile fails with ENOSYS. `self` is the process that
// it will be installed in.
FilterProgram foreign_code_filter(bool allow_threads, std::int32_t self);

// The same for one that goes on to use a GPU: what the driver does after it has started is allowed, writing
// to files too.
FilterProgram gpu_code_filter(std::int32_t self);

// For a whole program, before exec (compilers): no tracing, mounts, namespaces, keys, kernel interfaces, and
// no fork unless `allow_processes`: SIGSYS, which a program may catch to say what it was. Sockets fail with
// EACCES (looking up a user may ask for one), as do with EPERM limits set for another process. exec stays
// possible, files are left to the sandbox's mounts or Landlock.
FilterProgram program_filter(bool allow_processes);

// Asks a listener before each new process (threads are free).
FilterProgram process_count_filter();

// Installs for every thread of this process. 0 or an errno.
int install_filter(const FilterProgram& filter);
// Installs for this thread and gives the listener's descriptor (close-on-exec), or -errno.
int install_listener(const FilterProgram& filter);

}  // namespace warpsmith::process
