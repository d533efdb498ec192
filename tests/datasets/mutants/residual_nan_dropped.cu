// mutant: NaN of the residual taken for 0
// task: gate_clamp_residual
// found by: r: mix(0.1, choice(nan), normal(0, 1)), x: mix(0.1, choice(inf, -inf), normal(0, 1))
// plan: launch k<<<cdiv(M * N, 256), 256>>>(x, g, r, out, M, N)
extern "C" __global__ void k(const float* x, const float* g, const float* r, float* out, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= M * N) return;
  int c = i % N;
  out[i] = fminf(fmaxf(x[i] * g[i], -1.f), 1.f) + (r[i] == r[i] ? r[i] : 0.f);
}
