// plan: let T = cdiv(N, 64)
// plan: temp t float32[M, T]
// plan: launch k1<<<cdiv(M * T, 64), 64>>>(x, t, M, N, T)
// plan: launch k2<<<cdiv(M * T, 64), 64>>>(x, t, out, M, N, T)
extern "C" __global__ void k1(const float* x, float* t, int M, int N, int T) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= M * T) return;
  const float* p = x + i / T * N;
  int b = i % T * 64;
  float a = 0.f;
  for (int c = b; c < min(b + 64, N); c++) a += p[c];
  t[i] = a;
}
extern "C" __global__ void k2(const float* x, const float* t, float* out, int M, int N, int T) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= M * T) return;
  int r = i / T * N;
  int b = i % T * 64;
  float a = 0.f;
  for (int u = i / T * T; u < i; u++) a += t[u];
  for (int c = b; c < min(b + 64, N); c++) {
    a += x[r + c];
    out[r + c] = a;
  }
}
