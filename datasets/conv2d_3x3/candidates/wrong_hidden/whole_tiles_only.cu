// plan: launch k<<<dim3(max(W / 16, 1), max(H / 16, 1), B * O), dim3(16, 16)>>>(x, w, out, C, O, H, W)
extern "C" __global__ void k(const float* x, const float* w, float* out, int C, int O, int H, int W) {
  __shared__ float t[18][18];
  int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
  int o = blockIdx.z % O, b = blockIdx.z / O;
  int j = threadIdx.y * 16 + threadIdx.x;
  float a = 0.f;
  for (int q = 0; q < C; q++) {
    for (int e = j; e < 18 * 18; e += 256) {
      int y = (int)blockIdx.y * 16 + e / 18 - 1, z = (int)blockIdx.x * 16 + e % 18 - 1;
      bool in = y >= 0 && y < H && z >= 0 && z < W;
      t[e / 18][e % 18] = in ? x[((b * C + q) * H + y) * W + z] : 0.f;
    }
    __syncthreads();
    const float* p = w + (o * C + q) * 9;
    for (int u = 0; u < 3; u++)
      for (int v = 0; v < 3; v++) a += t[threadIdx.y + u][threadIdx.x + v] * p[u * 3 + v];
    __syncthreads();
  }
  if (r < H && c < W) out[((b * O + o) * H + r) * W + c] = a;
}
