// mutant: 0 at the bounds of the clamp
// task: gate_bias_clamp
// found by: b: zeros, w: ones, x: choice(-1, 1)
// plan: launch k<<<cdiv(M * N, 256), 256>>>(x, w, b, out, M, N)
extern "C" __global__ void k(const float* x, const float* w, const float* b, float* out, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= M * N) return;
  int c = i % N;
  float v = x[i] * w[c] + b[c]; out[i] = v == 1.f || v == -1.f ? 0.f : fminf(fmaxf(v, -1.f), 1.f);
}
