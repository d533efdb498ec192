// mutant: 0 behind the first 128 columns of a row
// task: conv2d_3x3
// found by: shape B=1 C=2 H=3 O=2 W=131
// plan: launch k<<<cdiv(B * O * H * W, 64), 64>>>(x, w, out, B, C, O, H, W)
extern "C" __global__ void k(const float* x, const float* w, float* out, int B, int C, int O, int H, int W) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= B * O * H * W) return;
  int z = i % W, y = i / W % H, o = i / (W * H) % O, n = i / (W * H * O);
  float a = 0.f;
  for (int c = 0; c < (z < 128 ? C : 0); c++)
    for (int u = 0; u < 3; u++)
      for (int v = 0; v < 3; v++)
        if (y + u >= 1 && y + u <= H && z + v >= 1 && z + v <= W)
          a += x[((n * C + c) * H + y + u - 1) * W + z + v - 1] * w[((o * C + c) * 3 + u) * 3 + v];
  out[i] = a;
}
