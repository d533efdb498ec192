// plan: temp t float32[M, 8]
// plan: launch k1<<<cdiv(M * 8, 64), 64>>>(x, t, s, M, N)
// plan: launch k2<<<cdiv(M, 64), 64>>>(t, out, M, N)
extern "C" __global__ void k1(const float* x, float* t, float s, int M, int N) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= M * 8) return;
  int m = i / 8;
  float a = -INFINITY;
  for (int c = i % 8; c < N; c += 8) a = fmaxf(a, x[m * N + c] * x[m * N + c] * s);
  t[i] = a;
}
extern "C" __global__ void k2(const float* t, float* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  float a = t[m * 8];
  for (int u = 1; u < 8; u++) a = fmaxf(a, t[m * 8 + u]);
  out[m] = a;
}
