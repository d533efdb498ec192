#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__device__ float gelu(float x) { return 0.5f * x * (1.f + erff(x * 0.70710678f)); }

__global__ void gelu_kernel(const float* x, float* out, int64_t n) {
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n; i += int64_t(gridDim.x) * blockDim.x)
    out[i] = gelu(x[i]);
}

torch::Tensor forward(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda() && x.scalar_type() == torch::kFloat32, "float32 on the GPU");
  auto out = torch::empty_like(x);
  int64_t blocks = std::min<int64_t>((x.numel() + 255) / 256, 1024);
  gelu_kernel<<<blocks, 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), out.data_ptr<float>(),
                                                                    x.numel());
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward, "GELU"); }
