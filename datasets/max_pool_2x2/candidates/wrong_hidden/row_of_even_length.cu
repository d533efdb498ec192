// plan: launch k<<<cdiv(P * (H / 2) * (W / 2), 128), 128>>>(x, out, P, H, W)
extern "C" __global__ void k(const float* x, float* out, int P, int H, int W) {
  int i = blockIdx.x * 128 + threadIdx.x;
  int h = H / 2, v = W / 2, R = v * 2;
  if (i >= P * h * v) return;
  const float* p = x + (i / (h * v) * H + i / v % h * 2) * R + i % v * 2;
  out[i] = fmaxf(fmaxf(p[0], p[1]), fmaxf(p[R], p[R + 1]));
}
