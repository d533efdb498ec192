#include <dlfcn.h>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/log.h"
#include "warpsmith/model/fused.h"

namespace warpsmith::model {

const Fused& gpu_module() {
  static const Fused* const kModule = [] {
    const fs::path path = beside_programs("warpsmith-gpu.so");
    if (path.empty()) throw Error("warpsmith-gpu.so is missing beside the programs");
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw Error(::dlerror());
    using Make = const Fused* (*)();
    const auto make = reinterpret_cast<Make>(::dlsym(library, "warpsmith_make_fused"));
    if (make == nullptr) throw Error(::dlerror());
    return make();
  }();
  return *kModule;
}

const Fused* fused_for(const at::TensorOptions& options) {
  if (!options.device().is_cuda() || options.dtype() != at::kBFloat16) return nullptr;
  static const Fused* const kFused = []() -> const Fused* {
    try {
      return gpu_module().is_new_enough() ? &gpu_module() : nullptr;
    } catch (const Error& error) {
      log_warning(std::string("training and sampling go on without fused operations, slower: ") +
                  error.what());
      return nullptr;
    }
  }();
  return kFused;
}

}  // namespace warpsmith::model
