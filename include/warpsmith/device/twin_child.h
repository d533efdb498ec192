// The child's side of a TwinSession; what `warpsmith-twin` runs.
#pragma once

#include <filesystem>

namespace warpsmith::device {

struct TwinChildOptions {
  int memory_fd = -1;  // the memory file that the parent made
  std::filesystem::path binary;
  int threads = 1;
  bool mixed = false;  // TwinOptions::mixed
  bool seccomp = true;
};

// Loads the shared object, closes the sandbox, then serves requests until the parent is gone. Gives the exit
// code. Throws Error before the sandbox is closed.
int run_twin_child(const TwinChildOptions& options);

}  // namespace warpsmith::device
