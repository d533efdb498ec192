#include "kernel_trace.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#if __has_include(<cupti.h>) && __has_include(<crt/host_defines.h>)  // which it includes, and may be missing
#include <cupti.h>
#define WARPSMITH_HAS_CUPTI
#endif

namespace warpsmith::device {

#ifdef WARPSMITH_HAS_CUPTI

namespace {

#if CUPTI_API_VERSION >= 130000
using Kernel = CUpti_ActivityKernel10;
#else
using Kernel = CUpti_ActivityKernel9;
#endif

constexpr std::size_t kBufferBytes = 1 << 20, kAligned = 8;

// clang-format off
#define WARPSMITH_CUPTI(X) \
  X(cuptiGetVersion) X(cuptiActivityRegisterCallbacks) X(cuptiActivityEnable) X(cuptiActivityDisable) \
  X(cuptiActivityFlushAll) X(cuptiActivityGetNextRecord)
// clang-format on

struct Cupti {
#define WARPSMITH_POINTER(name) decltype(&::name) name = nullptr;
  WARPSMITH_CUPTI(WARPSMITH_POINTER)
#undef WARPSMITH_POINTER
};

// CUPTI's callbacks have no argument of ours, and may come from a thread of its own.
struct Seen {
  Cupti cupti;
  std::mutex lock;
  std::map<std::string, std::uint64_t> ns;  // by the kernel's name
};
Seen& seen() {
  static Seen one;
  return one;
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *buffer =
      static_cast<std::uint8_t*>(::operator new (kBufferBytes, std::align_val_t{kAligned}, std::nothrow));
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;  // as many as there is room for
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  Seen& all = seen();
  CUpti_Activity* record = nullptr;
  while (valid > 0 && all.cupti.cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    const auto* kernel = reinterpret_cast<const Kernel*>(record);
    const std::scoped_lock hold(all.lock);
    if (kernel->name != nullptr && kernel->end > kernel->start)
      all.ns[kernel->name] += kernel->end - kernel->start;
  }
  ::operator delete (buffer, std::align_val_t{kAligned});
}

}  // namespace

void KernelTrace::open() {
  const std::string name = "libcupti.so." + std::to_string(CUDA_VERSION / 1000);
  library_ = ::dlopen(name.c_str(), RTLD_NOW);
  if (library_ == nullptr) return;
  Cupti& cupti = seen().cupti;
  bool all = true;
#define WARPSMITH_LOAD(name)                                                     \
  cupti.name = reinterpret_cast<decltype(cupti.name)>(::dlsym(library_, #name)); \
  all = all && cupti.name != nullptr;
  WARPSMITH_CUPTI(WARPSMITH_LOAD)
#undef WARPSMITH_LOAD
  // A record's layout is that of a major version.
  std::uint32_t version = 0;
  if (!all || cupti.cuptiGetVersion(&version) != CUPTI_SUCCESS ||
      version / 10000 != CUPTI_API_VERSION / 10000)
    library_ = nullptr;
}

std::string KernelTrace::of(const std::function<void()>& work) const {
  Seen& all = seen();
  const Cupti& cupti = all.cupti;
  const bool on = library_ != nullptr &&
                  cupti.cuptiActivityRegisterCallbacks(give_buffer, take_buffer) == CUPTI_SUCCESS &&
                  cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS;
  work();
  if (!on) return {};
  (void)cupti.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  (void)cupti.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  const std::scoped_lock hold(all.lock);
  std::vector<std::pair<std::string, std::uint64_t>> kernels(all.ns.begin(), all.ns.end());
  all.ns.clear();
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string lines;
  for (const auto& [name, ns] : kernels) lines += std::to_string(ns) + " " + name + "\n";
  return lines;
}

#else  // built without CUPTI's headers

void KernelTrace::open() {}
std::string KernelTrace::of(const std::function<void()>& work) const {
  work();
  return {};
}

#endif

}  // namespace warpsmith::device
