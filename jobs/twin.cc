// warpsmith-twin FD THREADS BINARY [--mixed] [--no-seccomp]: runs a candidate on the CPU for a TwinSession,
// which starts it and speaks to it through the memory file FD. Not for people.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "warpsmith/base/error.h"
#include "warpsmith/base/terminal_text.h"
#include "warpsmith/device/twin_child.h"

int main(int argc, char** argv) {
  if (argc < 4) {
    warpsmith::print_terminal_text(
        stderr, "warpsmith-twin is started by warpsmith-measure; it does nothing by itself\n");
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
    warpsmith::print_terminal_text(stderr, e.what() + std::string("\n"));
    return e.exit_code();
  }
}
