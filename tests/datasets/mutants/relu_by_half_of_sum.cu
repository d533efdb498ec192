// mutant: relu as (v + |v|) / 2: too large for large v
// task: bias_relu_scale
// found by: x: mix(0.1, choice(inf, -inf), normal(0, 1))
// found by: x: choice(-3e38, 3e38)
// plan: launch k<<<cdiv(M * N, 256), 256>>>(x, b, s, out, M, N)
extern "C" __global__ void k(const float* x, const float* b, float s, float* out, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= M * N) return;
  int c = i % N;
  float v = x[i] + b[c]; out[i] = (v + fabsf(v)) * 0.5f * s;
}
