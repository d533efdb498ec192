// mutant: values bounded by 65,504, as in half precision
// task: residual_relu_scale
// found by: x: mix(0.1, choice(inf, -inf), normal(0, 1))
// found by: x: choice(-3e38, 3e38)
// plan: launch k<<<cdiv(M * N, 256), 256>>>(x, r, s, out, M, N)
extern "C" __global__ void k(const float* x, const float* r, float s, float* out, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= M * N) return;
  int c = i % N;
  out[i] = fminf(fmaxf(x[i] + r[i], 0.f), 65504.f) * s;
}
