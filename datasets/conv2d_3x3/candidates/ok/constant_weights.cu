// plan: if O * C * 9 <= 1024
// plan: const G <- w
// plan: launch k<<<dim3(cdiv(H * W, 64), O, B), 64>>>(x, out, C, O, H, W)
// plan: else
// plan: launch kw<<<dim3(cdiv(H * W, 64), O, B), 64>>>(x, w, out, C, O, H, W)
// plan: end
__constant__ float G[1024];
__device__ float at(const float* x, const float* g, int C, int H, int W, int r, int c) {
  float a = 0.f;
  for (int e = 0; e < C * 9; e++) {
    int y = r + e % 9 / 3 - 1, z = c + e % 3 - 1;
    if (y >= 0 && y < H && z >= 0 && z < W) a += x[(e / 9 * H + y) * W + z] * g[e];
  }
  return a;
}
extern "C" __global__ void k(const float* x, float* out, int C, int O, int H, int W) {
  int i = blockIdx.x * 64 + threadIdx.x;
  int o = blockIdx.y, b = blockIdx.z;
  if (i < H * W) out[(b * O + o) * H * W + i] = at(x + b * C * H * W, G + o * C * 9, C, H, W, i / W, i % W);
}
extern "C" __global__ void kw(const float* x, const float* w, float* out, int C, int O, int H, int W) {
  int i = blockIdx.x * 64 + threadIdx.x;
  int o = blockIdx.y, b = blockIdx.z;
  if (i < H * W) out[(b * O + o) * H * W + i] = at(x + b * C * H * W, w + o * C * 9, C, H, W, i / W, i % W);
}
