// warpsmith-twin FD THREADS BINARY [--mixed] [--no-seccomp]: runs a candidate on the CPU for a TwinSession,
// which starts it and speaks to it through the memory file FD. Not for people.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "warpsmith/base/error.h"
#include "warpsmith/device/twin_child.h"

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "warpsmith-twin is started by warpsmith-measure; it does nothing by itself\n");
    return warpsmith::kExitUsage;
  }
  try {
    warpsmith::device::TwinChildOptions options;
    options.memory_fd = std::atoi(argv[1]);
    options.threads = std::atoi(argv[2]);
    options.binary = argv[3];
    for (int i = 4; i < argc; ++i) {
      if (std::strcmp(argv[i], "--mixed") == 0) options.mixed = true;
      if (std::strcmp(argv[i], "--no-seccomp") == 0) options.seccomp = false;
    }
    return warpsmith::device::run_twin_child(options);
  } catch (const warpsmith::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return e.exit_code();
  }
}
