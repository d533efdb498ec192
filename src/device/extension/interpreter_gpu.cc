#include "interpreter_code.h"
#include "warpsmith/device/extension_child.h"

namespace warpsmith::device {

ExtensionGpu& interpreters_gpu() {
  static const std::unique_ptr<ExtensionGpu> kGpu = open_cuda_gpu();
  return *kGpu;
}

}  // namespace warpsmith::device
