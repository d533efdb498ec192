// plan: fill out 0
// plan: for e in 0..9
// plan: launch k<<<dim3(cdiv(H * W, 128), O, B), 128>>>(x, w, out, e, C, O, H, W)
// plan: end
extern "C" __global__ void k(const float* x, const float* w, float* out, int e, int C, int O, int H, int W) {
  int i = blockIdx.x * 128 + threadIdx.x;
  int o = blockIdx.y, b = blockIdx.z;
  int y = i / W + e / 3 - 1, z = i % W + e % 3 - 1;
  if (i >= H * W || y < 0 || y >= H || z < 0 || z >= W) return;
  float a = 0.f;
  for (int q = 0; q < C; q++) a += x[((b * C + q) * H + y) * W + z] * w[(o * C + q) * 9 + e];
  out[(b * O + o) * H * W + i] += a;
}
