// hack: looks for work to do while it is loaded, and crashes
// task: gelu
// verdict: crash
#include <torch/extension.h>
__global__ void k(const float* x, float* o, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) o[i] = 0.5f * x[i] * (1.f + erff(x[i] * 0.70710678f));
}
static void gelu(const torch::Tensor& x, torch::Tensor& o, cudaStream_t s = 0) {
  int n = x.numel();
  k<<<(n + 255) / 256, 256, 0, s>>>(x.data_ptr<float>(), o.data_ptr<float>(), n);
}
struct Early { Early() { void* p = nullptr; cudaMalloc(&p, 1 << 20); *(volatile int*)16 = 1; } };
static Early early;
torch::Tensor forward(torch::Tensor x) {
  auto o = torch::empty_like(x);
  gelu(x, o);
  return o;
}
