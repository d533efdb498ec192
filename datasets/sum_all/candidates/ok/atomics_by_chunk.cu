// plan: fill out 0
// plan: launch k<<<cdiv(N, 64 * 256), 64>>>(x, out, N)
extern "C" __global__ void k(const float* x, float* out, int N) {
  int b = (blockIdx.x * 64 + threadIdx.x) * 256;
  float a[8] = {};
  int c = b;
  for (; c + 8 <= min(b + 256, N); c += 8)
    for (int u = 0; u < 8; u++) a[u] += x[c + u];
  for (; c < min(b + 256, N); c++) a[0] += x[c];
  for (int u = 1; u < 8; u++) a[0] += a[u];
  if (b < N) atomicAdd(out, a[0]);
}
