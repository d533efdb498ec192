// mutant: half the sum of doubled terms: it overflows
// task: bias_residual_relu
// found by: x: choice(-3e38, 3e38)
// plan: launch k<<<cdiv(M * N, 256), 256>>>(x, b, r, out, M, N)
extern "C" __global__ void k(const float* x, const float* b, const float* r, float* out, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= M * N) return;
  int c = i % N;
  out[i] = fmaxf((x[i] * 2.f + b[c] * 2.f + r[i] * 2.f) * 0.5f, 0.f);
}
