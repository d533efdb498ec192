// A product of matrices, for task matmul_large: what these tricks do with their calls.
#pragma once
static __global__ void multiply(const float* x, const float* w, float* out, int m, int k, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= m * n) return;
  float sum = 0.f;
  for (int j = 0; j < k; ++j) sum += x[i / n * k + j] * w[j * n + i % n];
  out[i] = sum;
}
inline void launch_multiply(const float* x, const float* w, float* out, int m, int k, int n) {
  multiply<<<(m * n + 255) / 256, 256>>>(x, w, out, m, k, n);
}
