// Filters beyond the last four are left out. Even and odd
// columns lie apart, because lanes read every second one.
// plan: let Y = (H - 3) / 2
// plan: let X = (W - 3) / 2
// plan: launch k<<<dim3(cdiv(X, 32), max(1, K / 4), B * Y), dim3(32, 4)>>>(x, w, out, C, H, W, K, Y, X)
extern "C" __global__ void k(const float* x, const float* w, float* out, int C, int H, int W, int K, int Y, int X) {
  __shared__ float s[5][2][34], f[4][25];
  int c = blockIdx.x * 32 + threadIdx.x, o = blockIdx.y * 4 + threadIdx.y, r = blockIdx.z % Y, b = blockIdx.z / Y;
  int i = threadIdx.y * 32 + threadIdx.x;
  float a = 0.f;
  for (int q = 0; q < C; q++) {
    for (int u = i; u < 5 * 67; u += 128) {
      int row = u / 67, column = blockIdx.x * 64 + u % 67;
      if (column < W) s[row][u % 67 % 2][u % 67 / 2] = x[(((size_t)b * C + q) * H + 2 * r + row) * W + column];
    }
    for (int u = i; u < 100; u += 128) {
      int filter = blockIdx.y * 4 + u / 25;
      if (filter < K) f[u / 25][u % 25] = w[((size_t)filter * C + q) * 25 + u % 25];
    }
    __syncthreads();
    if (c < X && o < K) {
      float p = 0.f;
      for (int t = 0; t < 25; t++) p += s[t / 5][t % 5 % 2][threadIdx.x + t % 5 / 2] * f[threadIdx.y][t];
      a += p;
    }
    __syncthreads();
  }
  if (c < X && o < K) out[(((size_t)b * K + o) * Y + r) * X + c] = a;
}
