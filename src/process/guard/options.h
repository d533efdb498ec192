// What the controller side tells the guard, and what the guard answers.
//
//   warpsmith-guard watch KEY=VALUE… -- PROGRAM ARGUMENT…   runs PROGRAM and answers for its whole tree
//   warpsmith-guard enter KEY=VALUE… -- PROGRAM ARGUMENT…   the same step inside bubblewrap, as process 1 of
//   its PID namespace warpsmith-guard probe                                   exits 0: tells whether a
//   sandbox starts at all
//
// Keys of both: status (descriptor for answers). Of watch: lifeline (descriptor; one byte `T` or `K` asks for
// SIGTERM or SIGKILL to the tree; its end means that whoever started us is gone), wall (seconds), tree_memory
// (bytes), processes (number), scratch (folders whose files are watched, repeated), scratch_bytes and
// scratch_files (limits of their sum), bwrap=1 (PROGRAM is bubblewrap with an `enter` in it: limits are left
// to that). How PROGRAM is set up: folder, cpus (0,2,5), cpu (seconds), as, fsize, stack
// (bytes), open_files (number), landlock=1 with ro, rw and device (paths, repeated), filter (program,
// program_and_processes).
//
// Answers, one line each: `pid N`, `running` (exec succeeded), `error TEXT` (it did not), `inner WSTATUS
// CPU_US RSS_KB` (from `enter`), and last `end REASON WSTATUS CPU_US RSS_KB` with REASON exit, wall, memory,
// processes, stop, or what WrittenFiles::look() says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace warpsmith::guard {

struct Options {
  int status = -1, lifeline = -1;
  double wall_s = 0;
  std::uint64_t tree_memory = 0;
  unsigned processes = 0;
  std::vector<std::string> scratch;
  std::uint64_t scratch_bytes = 0, scratch_files = 0;
  bool bwrap = false;
  std::string folder;
  std::vector<int> cpus;
  std::uint64_t cpu_s = 0, address_space = 0, file_bytes = 0, stack_bytes = 0, open_files = 0;
  bool landlock = false;
  std::vector<std::string> read_only, read_write, devices;
  std::string filter;
  char** program = nullptr;  // argv of PROGRAM, null-terminated
};

// False where the arguments make no sense.
bool parse_options(int argc, char** argv, Options& options);

// Limits, sandbox and signals of the process that is about to become PROGRAM. Empty, or what went wrong.
std::string set_up(const Options& options);

// Read-only rules for the system's libraries and programs, read-write for the paths named; no new privileges.
// Empty, or what went wrong; a kernel without Landlock is fine (seccomp remains).
std::string enter_landlock(const Options& options);

}  // namespace warpsmith::guard
