// warpsmith-extension CONTROL_FD SOCKET_FD BINARY [--no-seccomp]: runs a candidate of tier `extension` on the
// GPU for an ExtensionSession, which starts it. Not for people.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "warpsmith/base/error.h"
#include "warpsmith/device/extension_child.h"

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "warpsmith-extension is started by warpsmith-measure; it does nothing by itself\n");
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
    std::fprintf(stderr, "%s\n", e.what());
    return e.exit_code();
  }
}
