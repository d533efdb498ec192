// plan: let Y = (H - 3) / 2
// plan: let X = (W - 3) / 2
// plan: launch k<<<cdiv(B * K * Y * X, 128), 128>>>(x, w, out, B * K * Y * X, C, H, W, K, Y, X)
extern "C" __global__ void k(const float* x, const float* w, float* out, int n, int C, int H, int W, int K, int Y,
                             int X) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= n) return;
  int c = i % X, r = i / X % Y, o = i / X / Y % K, b = i / X / Y / K;
  float a = 0.f;
  for (int q = 0; q < C; q++) {
    const float* v = x + (((size_t)b * C + q) * H + 2 * r) * W + 2 * c;
    const float* u = w + ((size_t)o * C + q) * 25;
    float p = 0.f;
    for (int t = 0; t < 25; t++) p += v[t / 5 * W + t % 5] * u[t];
    a += p;
  }
  out[i] = a;
}
