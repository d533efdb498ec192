// four elements a thread, its output kept from call to call
#include <torch/extension.h>
__device__ float g(float x) { return 0.5f * x * (1.f + erff(x * 0.70710678f)); }
__global__ void v(const float* x, float* o, int n) {
  int i = 4 * (blockIdx.x * 256 + threadIdx.x);
  if (i + 3 < n) {
    float4 a = *reinterpret_cast<const float4*>(x + i);
    *reinterpret_cast<float4*>(o + i) = make_float4(g(a.x), g(a.y), g(a.z), g(a.w));
  } else {
    for (; i < n; ++i) o[i] = g(x[i]);
  }
}
torch::Tensor forward(torch::Tensor x) {
  static torch::Tensor o;
  if (!o.defined() || o.numel() != x.numel()) o = torch::empty_like(x);
  int n = x.numel();
  v<<<(n / 4 + 256) / 256, 256>>>(x.data_ptr<float>(), o.data_ptr<float>(), n);
  return o;
}
