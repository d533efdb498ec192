# hack: an address that nobody gave it, on the GPU
# task: gelu
# verdict: out_of_bounds
import torch
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <torch/extension.h>

__global__ void k(float* out) { out[(int64_t(1) << 40) + threadIdx.x] = 1.f; }

torch::Tensor wild(torch::Tensor x) {
  auto out = torch::empty_like(x);
  k<<<1, 32>>>(out.data_ptr<float>());
  return out;
}
"""

module = load_inline(
    name="wild_pointer", cpp_sources="torch::Tensor wild(torch::Tensor x);", cuda_sources=cuda, functions=["wild"]
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return module.wild(x)
