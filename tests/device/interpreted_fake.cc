// What a python3 loads in tests in place of warpsmith-interpreted.so: host memory in place of a GPU.
#include "extension/interpreter_code.h"
#include "host_memory_gpu.h"

namespace warpsmith::device {

ExtensionGpu& interpreters_gpu() {
  static HostMemoryGpu gpu;
  return gpu;
}

}  // namespace warpsmith::device
