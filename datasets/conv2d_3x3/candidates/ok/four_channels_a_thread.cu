// plan: launch k<<<dim3(cdiv(W, 32), H, B * cdiv(O, 4)), 32>>>(x, w, out, C, O, H, W)
extern "C" __global__ void k(const float* x, const float* w, float* out, int C, int O, int H, int W) {
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y;
  int n = (O + 3) / 4;
  int o = blockIdx.z % n * 4, b = blockIdx.z / n;
  if (c >= W) return;
  float a[4] = {};
  for (int q = 0; q < C; q++)
    for (int e = 0; e < 9; e++) {
      int y = r + e / 3 - 1, z = c + e % 3 - 1;
      if (y < 0 || y >= H || z < 0 || z >= W) continue;
      float v = x[((b * C + q) * H + y) * W + z];
      for (int u = 0; u < 4; u++)
        if (o + u < O) a[u] += v * w[((o + u) * C + q) * 9 + e];
    }
  for (int u = 0; u < 4; u++)
    if (o + u < O) out[((b * O + o + u) * H + r) * W + c] = a[u];
}
