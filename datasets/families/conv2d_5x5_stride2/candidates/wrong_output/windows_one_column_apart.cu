// Windows begin one column apart, as at a stride of 1.
// plan: let Y = (H - 3) / 2
// plan: let X = (W - 3) / 2
// plan: temp t float32[B, Y, C, 5 * W]
// plan: temp v float32[K, C, 25]
// plan: launch order<<<cdiv(B * Y * C * 5 * W, 256), 256>>>(x, t, B * Y * C * 5 * W, Y, C, H, W)
// plan: launch turn<<<cdiv(K * C * 25, 128), 128>>>(w, v, K * C * 25)
// plan: launch k<<<dim3(cdiv(X, 32), cdiv(K, 4), B * Y), 32>>>(t, v, out, C, W, K, Y, X)
extern "C" __global__ void order(const float* x, float* t, int n, int Y, int C, int H, int W) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  int row = i % 5, c = i / 5 % W, q = i / 5 / W % C, r = i / 5 / W / C % Y, b = i / 5 / W / C / Y;
  t[i] = x[(((size_t)b * C + q) * H + 2 * r + row) * W + c];
}
extern "C" __global__ void turn(const float* w, float* v, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) v[i] = w[i / 25 * 25 + i % 5 * 5 + i % 25 / 5];
}
extern "C" __global__ void k(const float* t, const float* v, float* out, int C, int W, int K, int Y, int X) {
  int c = blockIdx.x * 32 + threadIdx.x, first = blockIdx.y * 4, rows = min(4, K - first), b = blockIdx.z / Y;
  if (c >= X) return;
  float a[4] = {0.f, 0.f, 0.f, 0.f};
  for (int q = 0; q < C; q++) {
    const float* window = t + ((size_t)blockIdx.z * C + q) * 5 * W + 5 * c;
    float u[25];
#pragma unroll
    for (int e = 0; e < 25; e++) u[e] = window[e];
#pragma unroll
    for (int o = 0; o < 4; o++) {
      if (o >= rows) break;
      const float* f = v + ((size_t)(first + o) * C + q) * 25;
      float p = 0.f;
#pragma unroll
      for (int e = 0; e < 25; e++) p += u[e] * f[e];
      a[o] += p;
    }
  }
  for (int o = 0; o < rows; o++)
    out[(((size_t)b * K + first + o) * Y + blockIdx.z % Y) * X + c] = a[o];
}
