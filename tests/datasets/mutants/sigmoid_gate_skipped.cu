// mutant: no gate where the sigmoid is 0
// task: sigmoid_gate_residual
// found by: g: mix(0.1, choice(inf, -inf), normal(0, 1)), x: mix(0.2, choice(nan, inf, -inf), normal(0, 1))
// plan: launch k<<<cdiv(M * N, 256), 256>>>(x, g, r, out, M, N)
extern "C" __global__ void k(const float* x, const float* g, const float* r, float* out, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= M * N) return;
  int c = i % N;
  float v = 1.f / (1.f + expf(-x[i])); out[i] = v == 0.f ? r[i] : v * g[i] + r[i];
}
