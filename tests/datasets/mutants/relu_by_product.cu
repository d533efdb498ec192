// mutant: relu as v * (v > 0): NaN for -inf
// task: bias_relu_scale
// found by: x: mix(0.1, choice(inf, -inf), normal(0, 1))
// plan: launch k<<<cdiv(M * N, 256), 256>>>(x, b, s, out, M, N)
extern "C" __global__ void k(const float* x, const float* b, float s, float* out, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= M * N) return;
  int c = i % N;
  float v = x[i] + b[c]; out[i] = v * (v > 0.f) * s;
}
