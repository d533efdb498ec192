#include "cudnn_library.h"

#include <dlfcn.h>

#include <string>

#include "warpsmith/base/error.h"

namespace warpsmith::measure::cudnn {

namespace {

Library open_library() {
  const std::string name = "libcudnn.so." + std::to_string(CUDNN_MAJOR);
  void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) throw Error(std::string("cuDNN does not load: ") + ::dlerror());
  Library library;
  const char* lacks = nullptr;
#define WARPSMITH_CUDNN_LOAD(name)                                                 \
  library.name = reinterpret_cast<decltype(library.name)>(::dlsym(handle, #name)); \
  if (library.name == nullptr) lacks = #name;
  WARPSMITH_CUDNN_FUNCTIONS(WARPSMITH_CUDNN_LOAD)
#undef WARPSMITH_CUDNN_LOAD
  if (lacks != nullptr) throw Error(std::string("this cuDNN has no ") + lacks);
  return library;
}

// More than the status: which of its conditions did not hold.
std::string detail() {
#if CUDNN_MAJOR >= 9
  char message[1024] = "";
  api().cudnnGetLastErrorString(message, sizeof message);
  std::string text = message;
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text.empty() ? "" : ": " + text;
#else
  return "";
#endif
}

}  // namespace

const Library& api() {
  static const Library library = open_library();
  return library;
}

void check(cudnnStatus_t status, const char* doing) {
  if (status != CUDNN_STATUS_SUCCESS)
    throw Error(std::string("cuDNN, ") + doing + ": " + api().cudnnGetErrorString(status) + detail());
}

cudnnHandle_t handle() {
  static const cudnnHandle_t made = [] {
    cudnnHandle_t h = nullptr;
    check(api().cudnnCreate(&h), "starting");
    return h;
  }();
  return made;
}

}  // namespace warpsmith::measure::cudnn
