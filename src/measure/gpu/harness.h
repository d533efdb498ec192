// What measuring on a GPU needs of it, apart from any candidate.
#pragma once

#include <span>

#include "clock.h"
#include "kernels.h"
#include "operands.h"
#include "warpsmith/device/gpu.h"
#include "warpsmith/measure/values.h"

namespace warpsmith::measure {

class GpuHarness {
 public:
  // `cubin`: of kernels.cu for this GPU. `gpu` and `source` must outlive it.
  GpuHarness(const device::Gpu& gpu, std::span<const std::byte> cubin, const ValueSource& source)
      : gpu_(gpu), source_(source), kernels_(gpu, cubin, source), memory_(gpu), clock_(gpu, kernels_) {}
  GpuHarness(const GpuHarness&) = delete;
  GpuHarness& operator=(const GpuHarness&) = delete;
  const device::Gpu& gpu() const { return gpu_; }
  const ValueSource& source() const { return source_; }
  const GpuKernels& kernels() const { return kernels_; }
  GpuMemoryPool& memory() const { return memory_; }
  GpuClock& clock() { return clock_; }

 private:
  const device::Gpu& gpu_;
  const ValueSource& source_;
  GpuKernels kernels_;
  mutable GpuMemoryPool memory_;
  GpuClock clock_;
};

}  // namespace warpsmith::measure
