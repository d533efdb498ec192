// plan: launch k<<<dim3(cdiv(W / 2, 64), H / 2, P), 64>>>(x, out, H, W)
extern "C" __global__ void k(const float* x, float* out, int H, int W) {
  int c = blockIdx.x * 64 + threadIdx.x;
  int r = blockIdx.y, n = blockIdx.z;
  if (c >= W / 2) return;
  float a = -INFINITY;
  for (int u = 0; u < 2; u++)
    for (int v = 0; v < 2; v++) a = fmaxf(a, x[(n * H + r * 2 + u) * W + c * 2 + v]);
  out[(n * (H / 2) + r) * (W / 2) + c] = a;
}
