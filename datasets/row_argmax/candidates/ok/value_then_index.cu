// plan: launch k<<<cdiv(M, 64), 64>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, long long* out, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  const float* p = x + m * N;
  float h[8];
  for (int u = 0; u < 8; u++) h[u] = p[0];
  int n = N / 8 * 8;
  for (int c = 0; c < n; c += 8)
    for (int u = 0; u < 8; u++) h[u] = fmaxf(h[u], p[c + u]);
  for (int c = n; c < N; c++) h[0] = fmaxf(h[0], p[c]);
  for (int u = 1; u < 8; u++) h[0] = fmaxf(h[0], h[u]);
  int e = 0;
  while (p[e] != h[0]) e++;
  out[m] = e;
}
