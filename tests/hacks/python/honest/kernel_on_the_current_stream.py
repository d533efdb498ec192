# A kernel of its own, on the stream that torch says.
# task: gelu
import torch
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

__global__ void gelu_kernel(const float* x, float* out, int64_t n) {
  int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) out[i] = 0.5f * x[i] * (1.f + erff(x[i] * 0.70710678f));
}

torch::Tensor gelu(torch::Tensor x) {
  auto out = torch::empty_like(x);
  int64_t n = x.numel();
  gelu_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), n);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

module = load_inline(
    name="gelu_on_the_current_stream",
    cpp_sources="torch::Tensor gelu(torch::Tensor x);",
    cuda_sources=cuda,
    functions=["gelu"],
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return module.gelu(x)
