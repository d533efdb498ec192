# what nvcc refuses
import torch
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>

__global__ void gelu_kernel(const float* x, float* out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x
  if (i < n) out[i] = 0.5f * x[i] * (1.f + erff(x[i] * 0.70710678f));
}

torch::Tensor gelu(torch::Tensor x) {
  auto out = torch::empty_like(x);
  int n = x.numel();
  gelu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
  return out;
}
"""

module = load_inline(
    name="broken_gelu", cpp_sources="torch::Tensor gelu(torch::Tensor x);", cuda_sources=cuda, functions=["gelu"]
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return module.gelu(x)
