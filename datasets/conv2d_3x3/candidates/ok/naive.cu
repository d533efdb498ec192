// plan: launch k<<<cdiv(B * O * H * W, 128), 128>>>(x, w, out, B, C, O, H, W)
extern "C" __global__ void k(const float* x, const float* w, float* out, int B, int C, int O, int H, int W) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= B * O * H * W) return;
  int c = i % W, r = i / W % H, o = i / (W * H) % O, b = i / (W * H * O);
  float a = 0.f;
  for (int q = 0; q < C; q++)
    for (int u = 0; u < 3; u++)
      for (int v = 0; v < 3; v++) {
        int y = r + u - 1, z = c + v - 1;
        if (y >= 0 && y < H && z >= 0 && z < W) a += x[((b * C + q) * H + y) * W + z] * w[((o * C + q) * 3 + u) * 3 + v];
      }
  out[i] = a;
}
