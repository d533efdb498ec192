// plan: temp v float32[M, 8]
// plan: temp t int32[M, 8]
// plan: launch k1<<<cdiv(M * 8, 64), 64>>>(x, v, t, M, N)
// plan: launch k2<<<cdiv(M, 64), 64>>>(v, t, out, M)
extern "C" __global__ void k1(const float* x, float* v, int* t, int M, int N) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= M * 8) return;
  int w = (N + 7) / 8;
  int b = i % 8 * w;
  const float* p = x + i / 8 * N;
  float a = -INFINITY;
  int e = b;
  for (int c = b; c < min(b + w, N); c++) {
    if (p[c] > a) {
      a = p[c];
      e = c;
    }
  }
  v[i] = a;
  t[i] = e;
}
extern "C" __global__ void k2(const float* v, const int* t, long long* out, int M) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  int e = m * 8;
  for (int u = e + 1; u < m * 8 + 8; u++)
    if (v[u] > v[e]) e = u;
  out[m] = t[e];
}
