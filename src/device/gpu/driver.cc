#include "driver.h"

#include <dlfcn.h>

#include "outcome.h"
#include "warpsmith/base/error.h"

namespace warpsmith::device {

namespace {

#define WARPSMITH_TEXT(x) #x
#define WARPSMITH_NAME(x) WARPSMITH_TEXT(x)  // after cuda.h has turned cuMemAlloc into cuMemAlloc_v2

Driver open_driver() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) throw Error(std::string("there is no NVIDIA driver here: ") + ::dlerror());
  Driver d;
  const char* missing = nullptr;
#define WARPSMITH_CUDA_LOAD(name)                                                      \
  d.name = reinterpret_cast<decltype(d.name)>(::dlsym(library, WARPSMITH_NAME(name))); \
  if (d.name == nullptr) missing = WARPSMITH_NAME(name);
  WARPSMITH_CUDA_FUNCTIONS(WARPSMITH_CUDA_LOAD)
  if (missing != nullptr) throw Error(std::string("the NVIDIA driver is too old: it has no ") + missing);
  WARPSMITH_CUDA_NEWER_FUNCTIONS(WARPSMITH_CUDA_LOAD)
#undef WARPSMITH_CUDA_LOAD
  if (const CUresult result = d.cuInit(0); result != CUDA_SUCCESS) {
    const char* text = nullptr;
    d.cuGetErrorString(result, &text);
    throw Error(std::string("the NVIDIA driver does not start: ") +
                (text != nullptr ? text : "unknown error"));
  }
  return d;
}

}  // namespace

const Driver& driver() {
  static const Driver opened = open_driver();
  return opened;
}

std::string error_text(CUresult result) {
  const char *name = nullptr, *text = nullptr;
  driver().cuGetErrorName(result, &name);
  driver().cuGetErrorString(result, &text);
  return std::string(name != nullptr ? name : "unknown CUDA error") +
         (text != nullptr ? std::string(": ") + text : "");
}

void check(CUresult result, const char* doing) {
  if (result != CUDA_SUCCESS)
    throw GpuError(std::string(doing) + ": " + error_text(result), outcome_of(result));
}

}  // namespace warpsmith::device
