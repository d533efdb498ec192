// mutant: a clamp by way of v / |v|: NaN for infinities
// task: gate_bias_clamp
// found by: x: mix(0.1, choice(inf, -inf), normal(0, 1))
// plan: launch k<<<cdiv(M * N, 256), 256>>>(x, w, b, out, M, N)
extern "C" __global__ void k(const float* x, const float* w, const float* b, float* out, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= M * N) return;
  int c = i % N;
  float v = x[i] * w[c] + b[c]; out[i] = fabsf(v) > 1.f ? v / fabsf(v) : v;
}
