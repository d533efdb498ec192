// mutant: a maximum of at least -1000
// task: max_pool_2x2
// found by: x: mix(0.7, choice(-1e4), normal(0, 1))
// plan: launch k<<<cdiv(P * (H / 2) * (W / 2), 128), 128>>>(x, out, P, H, W)
extern "C" __global__ void k(const float* x, float* out, int P, int H, int W) {
  int i = blockIdx.x * 128 + threadIdx.x;
  int h = H / 2, v = W / 2;
  if (i >= P * h * v) return;
  const float* p = x + (i / (h * v) * H + i / v % h * 2) * W + i % v * 2;
  out[i] = fmaxf(fmaxf(fmaxf(p[0], p[1]), fmaxf(p[W], p[W + 1])), -1000.f);
}
