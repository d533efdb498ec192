// As warpsmith-extension, with host memory in place of a GPU: for tests of what is said between the processes
// and of the sandbox.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "host_memory_gpu.h"
#include "warpsmith/base/error.h"

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  try {
    warpsmith::device::HostMemoryGpu gpu;
    warpsmith::device::run_extension_child({std::atoi(argv[1]), std::atoi(argv[2]), argv[3],
                                            argc < 5 || std::strcmp(argv[4], "--no-seccomp") != 0},
                                           gpu);
  } catch (const warpsmith::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return e.exit_code();
  }
}
