#include "step_graph.h"

#include <dlfcn.h>

#include "warpsmith/base/files.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/paths.h"

namespace warpsmith::model {

std::unique_ptr<StepGraph> make_step_graph() {
  const fs::path module = program_folder() / "warpsmith-cuda-graph.so";
  if (!path_exists(module)) return nullptr;
  void* const library = ::dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    log_warning(std::string("sampling goes on without CUDA graphs: ") + ::dlerror());
    return nullptr;
  }
  using Make = StepGraph* (*)();
  const auto make = reinterpret_cast<Make>(::dlsym(library, "warpsmith_make_step_graph"));
  return std::unique_ptr<StepGraph>(make == nullptr ? nullptr : make());
}

}  // namespace warpsmith::model
