// plan: launch k<<<cdiv(P * (H / 2), 64), 64>>>(x, out, P, H, W)
extern "C" __global__ void k(const float* x, float* out, int P, int H, int W) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= P * (H / 2)) return;
  const float* a = x + (i / (H / 2) * H + i % (H / 2) * 2) * W;
  const float* b = a + W;
  float* o = out + i * (W / 2);
  for (int c = 0; c < W / 2; c++) o[c] = fmaxf(fmaxf(a[c * 2], a[c * 2 + 1]), fmaxf(b[c * 2], b[c * 2 + 1]));
}
