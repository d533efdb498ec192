// scalars of the task as numbers
#include <torch/extension.h>
__global__ void row(const float* x, const float* w, float* o, float eps, int n) {
  __shared__ float part[256];
  const float* r = x + int64_t(blockIdx.x) * n;
  float a = 0.f;
  for (int c = threadIdx.x; c < n; c += 256) a += r[c] * r[c];
  part[threadIdx.x] = a;
  for (int s = 128; s > 0; s /= 2) {
    __syncthreads();
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
  }
  __syncthreads();
  float v = rsqrtf(part[0] / n + eps);
  for (int c = threadIdx.x; c < n; c += 256) o[int64_t(blockIdx.x) * n + c] = r[c] * v * w[c];
}
torch::Tensor forward(torch::Tensor x, torch::Tensor w, double eps) {
  auto o = torch::empty_like(x);
  int m = x.size(0), n = x.size(1);
  row<<<m, 256>>>(x.data_ptr<float>(), w.data_ptr<float>(), o.data_ptr<float>(), static_cast<float>(eps), n);
  return o;
}
