// warpsmith-extension CONTROL_FD SOCKET_FD BINARY [--no-seccomp]: runs a candidate of tier `extension` on the
// GPU for an ExtensionSession, which starts it. Not for people.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "warpsmith/base/error.h"
#include "warpsmith/base/terminal_text.h"
#include "warpsmith/device/extension_child.h"

int main(int argc, char** argv) {
  if (argc < 4) {
    warpsmith::print_terminal_text(
        stderr, "warpsmith-extension is started by warpsmith-measure; it does nothing by itself\n");
    return warpsmith::kExitUsage;
  }
  try {
    warpsmith::device::ExtensionChildOptions options;
    options.control_fd = std::atoi(argv[1]);
    options.socket_fd = std::atoi(argv[2]);
    options.binary = argv[3];
    options.seccomp = argc < 5 || std::strcmp(argv[4], "--no-seccomp") != 0;
    const auto gpu = warpsmith::device::open_cuda_gpu();
    warpsmith::device::run_extension_child(options, *gpu);
  } catch (const warpsmith::Error& e) {
    warpsmith::print_terminal_text(stderr, e.what() + std::string("\n"));
    return e.exit_code();
  }
}
