// plan: launch k<<<cdiv(M, 64), 64>>>(x, w, b, out, eps, M, N)
extern "C" __global__ void k(const float* x, const float* w, const float* b, float* out, float eps, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  const float* p = x + m * N;
  float a[8] = {}, q[8] = {};
  int n = N / 8 * 8;
  for (int c = 0; c < n; c += 8)
    for (int u = 0; u < 8; u++) a[u] += p[c + u];
  for (int c = n; c < N; c++) a[0] += p[c];
  for (int u = 1; u < 8; u++) a[0] += a[u];
  float h = a[0] / N;
  for (int c = 0; c < n; c += 8)
    for (int u = 0; u < 8; u++) q[u] += (p[c + u] - h) * (p[c + u] - h);
  for (int c = n; c < N; c++) q[0] += (p[c] - h) * (p[c] - h);
  for (int u = 1; u < 8; u++) q[0] += q[u];
  float v = rsqrtf(q[0] / N + eps);
  for (int c = 0; c < N; c++) out[m * N + c] = (p[c] - h) * v * w[c] + b[c];
}
