// The processes below one, by /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace warpsmith::process {

// Every descendant of `root`, parents first. Fast where the kernel lists children, else one pass over /proc.
std::vector<pid_t> descendants(pid_t root);

// Children of this very process.
std::vector<pid_t> children_of(pid_t parent);

struct ProcessStat {  // of /proc/PID/stat
  std::string name;   // 15 characters at most
  char state = 0;
  pid_t parent = -1;
};
// Nothing of it where the process is gone, or may not be seen.
ProcessStat stat_of(pid_t pid);

// Whether a signal has stopped this process.
bool is_stopped(pid_t pid);

// Resident memory of these processes together. Over `limit` (0: none) shared pages are counted once (PSS),
// which costs more.
std::uint64_t resident_bytes(const std::vector<pid_t>& processes, std::uint64_t limit);

}  // namespace warpsmith::process
