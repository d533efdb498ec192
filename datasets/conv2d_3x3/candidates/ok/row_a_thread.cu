// plan: launch k<<<cdiv(B * O * H, 32), 32>>>(x, w, out, B, C, O, H, W)
extern "C" __global__ void k(const float* x, const float* w, float* out, int B, int C, int O, int H, int W) {
  int i = blockIdx.x * 32 + threadIdx.x;
  if (i >= B * O * H) return;
  int r = i % H, o = i / H % O, b = i / (H * O);
  float* p = out + i * W;
  for (int c = 0; c < W; c++) p[c] = 0.f;
  for (int q = 0; q < C; q++)
    for (int u = 0; u < 3; u++) {
      int y = r + u - 1;
      if (y < 0 || y >= H) continue;
      const float* s = x + ((b * C + q) * H + y) * W;
      const float* g = w + (o * C + q) * 9 + u * 3;
      float g0 = g[0], g1 = g[1], g2 = g[2];
      for (int c = 1; c < W; c++) p[c] += s[c - 1] * g0;
      for (int c = 0; c < W; c++) p[c] += s[c] * g1;
      for (int c = 0; c + 1 < W; c++) p[c] += s[c + 1] * g2;
    }
}
