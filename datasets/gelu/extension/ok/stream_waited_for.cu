// a stream of its own, joined by events
#include <torch/extension.h>
__global__ void k(const float* x, float* o, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) o[i] = 0.5f * x[i] * (1.f + erff(x[i] * 0.70710678f));
}
static void gelu(const torch::Tensor& x, torch::Tensor& o, cudaStream_t s = 0) {
  int n = x.numel();
  k<<<(n + 255) / 256, 256, 0, s>>>(x.data_ptr<float>(), o.data_ptr<float>(), n);
}
torch::Tensor forward(torch::Tensor x) {
  static cudaStream_t s = [] { cudaStream_t t; cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking); return t; }();
  static cudaEvent_t a = [] { cudaEvent_t e; cudaEventCreateWithFlags(&e, cudaEventDisableTiming); return e; }();
  static cudaEvent_t b = [] { cudaEvent_t e; cudaEventCreateWithFlags(&e, cudaEventDisableTiming); return e; }();
  auto o = torch::empty_like(x);
  cudaEventRecord(a, 0);
  cudaStreamWaitEvent(s, a, 0);
  gelu(x, o, s);
  cudaEventRecord(b, s);
  cudaStreamWaitEvent(0, b, 0);
  return o;
}
