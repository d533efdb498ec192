// mutant: the first 1,024 columns summed alone
// task: layer_norm
// found by: shape M=20 N=1031
// plan: launch k<<<cdiv(M, 64), 64>>>(x, w, b, eps, out, M, N)
extern "C" __global__ void k(const float* x, const float* w, const float* b, float eps, float* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  const float* p = x + m * N;
  float a = 0.f, q = 0.f;
  int n = min(N, 1024);
  for (int c = 0; c < n; c++) a += p[c];
  a /= n;
  for (int c = 0; c < n; c++) q += (p[c] - a) * (p[c] - a);
  float v = rsqrtf(q / n + eps);
  for (int c = 0; c < N; c++) out[m * N + c] = (p[c] - a) * v * w[c] + b[c];
}
