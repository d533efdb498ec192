#include "warpsmith/model/placement.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/Allocator.h>
#include <dlfcn.h>
#include <torch/version.h>

#if __has_include(<c10/core/CachingDeviceAllocator.h>) && (TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 9)
#include <c10/core/CachingDeviceAllocator.h>
#define WARPSMITH_HAS_DEVICE_ALLOCATOR
#endif

#include <cstdlib>

#include "warpsmith/base/error.h"

namespace warpsmith::model {

at::TensorOptions place_for(bool gpu, const std::string& type) {
  const at::ScalarType wanted = type == "bfloat16" || (type == "auto" && gpu) ? at::kBFloat16 : at::kFloat;
  if (type != "auto" && type != "float32" && type != "bfloat16")
    throw Error("type `" + type + "`: auto, float32 and bfloat16 are known", kExitUsage);
  if (!gpu) return at::TensorOptions(wanted);
  // cuBLAS repeats its results bit for bit with workspaces of a fixed size.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr)
    throw Error(std::string("a GPU is asked for, and this torch has no CUDA: ") + dlerror());
  if (!at::detail::getCUDAHooks().hasCUDA())
    throw Error("a GPU is asked for, and torch finds none: is there a driver, and is it new enough?");
  return at::TensorOptions(wanted).device(at::Device(at::kCUDA, 0));
}

bool is_host(const at::TensorOptions& placement) {
  return placement.device().is_cpu() && placement.dtype() == at::kFloat;
}

#ifdef WARPSMITH_HAS_DEVICE_ALLOCATOR
namespace {

// Torch has it from 2.11 on.
template <typename Allocator>
std::optional<std::uint64_t> free_of(Allocator& allocator, c10::DeviceIndex device) {
  if constexpr (requires { allocator.getMemoryInfo(device); }) {
    allocator.emptyCache();
    return allocator.getMemoryInfo(device).first;
  }
  return std::nullopt;
}

}  // namespace
#endif

std::optional<std::uint64_t> free_memory(const at::TensorOptions& placement) {
  if (placement.device().is_cpu()) return std::nullopt;
#ifdef WARPSMITH_HAS_DEVICE_ALLOCATOR
  if (auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(placement.device().type())))
    return free_of(*allocator, placement.device().index());
#endif
  return std::nullopt;
}

std::optional<PeakMemory> peak_memory(const at::TensorOptions& placement) {
  if (placement.device().is_cpu()) return std::nullopt;
#ifdef WARPSMITH_HAS_DEVICE_ALLOCATOR
  if (auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(placement.device().type()))) {
    const auto stats = allocator->getDeviceStats(placement.device().index());
    const auto most = [](const c10::CachingAllocator::StatArray& bytes) {
      return static_cast<std::uint64_t>(
          bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)].peak);
    };
    return PeakMemory{most(stats.allocated_bytes), most(stats.reserved_bytes)};
  }
#endif
  return std::nullopt;
}

}  // namespace warpsmith::model
