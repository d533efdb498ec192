// Products of square matrices on the GPU, as torch's matmul takes them: what a matrix rate is measured with.
#pragma once

#include <cstdint>

#include "warpsmith/device/gpu.h"
#include "warpsmith/task/task.h"

namespace warpsmith::measure {

struct MatrixProduct {
  task::Dtype dtype = task::Dtype::kFloat32;  // floating, of 2 bytes or more
  bool tf32 = false;                          // whether cuBLAS may take float32 operands as TF32
  std::int64_t size = 0;                      // each matrix is size x size
  device::GpuAddress a = 0, b = 0, out = 0;

  std::uint64_t matrix_bytes() const {
    return task::size_of(dtype) * static_cast<std::uint64_t>(size * size);
  }
  double flop() const {
    const auto n = static_cast<double>(size);
    return 2 * n * n * n;
  }
  // Enqueues out = a b on the default stream, with that setting of TF32 and none left behind. torch's CUDA
  // must be loaded (load_torch_cuda()). Throws Error with torch's message.
  void enqueue() const;
};

}  // namespace warpsmith::measure
