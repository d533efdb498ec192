// mutant: masked columns by a product with 0
// task: square_bias_relu
// found by: b: mix(0.5, choice(-inf), normal(0, 1))
// plan: launch k<<<cdiv(M * N, 256), 256>>>(x, b, out, M, N)
extern "C" __global__ void k(const float* x, const float* b, float* out, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= M * N) return;
  int c = i % N;
  float v = x[i] * x[i] + b[c]; out[i] = v * (v > 0.f ? 1.f : 0.f);
}
