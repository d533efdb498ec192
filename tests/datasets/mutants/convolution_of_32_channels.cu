// mutant: the first 32 channels alone
// task: conv2d_3x3
// found by: shape B=1 C=37 H=5 O=19 W=6
// plan: launch k<<<cdiv(B * O * H * W, 64), 64>>>(x, w, out, B, C, O, H, W)
extern "C" __global__ void k(const float* x, const float* w, float* out, int B, int C, int O, int H, int W) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= B * O * H * W) return;
  int z = i % W, y = i / W % H, o = i / (W * H) % O, n = i / (W * H * O);
  float a = 0.f;
  for (int c = 0; c < min(C, 32); c++)
    for (int u = 0; u < 3; u++)
      for (int v = 0; v < 3; v++)
        if (y + u >= 1 && y + u <= H && z + v >= 1 && z + v <= W)
          a += x[((n * C + c) * H + y + u - 1) * W + z + v - 1] * w[((o * C + c) * 3 + u) * 3 + v];
  out[i] = a;
}
