// plan: let T = C * 9
// plan: temp t float32[B, T, H, W]
// plan: launch k1<<<cdiv(B * T * H * W, 128), 128>>>(x, t, B, C, H, W)
// plan: launch k2<<<dim3(cdiv(H * W, 128), O, B), 128>>>(t, w, out, T, O, H * W)
extern "C" __global__ void k1(const float* x, float* t, int B, int C, int H, int W) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= B * C * 9 * H * W) return;
  int e = i / (W * H) % 9;
  int y = i / W % H + e / 3 - 1, z = i % W + e % 3 - 1;
  bool in = y >= 0 && y < H && z >= 0 && z < W;
  t[i] = in ? x[(i / (W * H * 9) * H + y) * W + z] : 0.f;
}
extern "C" __global__ void k2(const float* t, const float* w, float* out, int T, int O, int L) {
  int c = blockIdx.x * 128 + threadIdx.x;
  int o = blockIdx.y, b = blockIdx.z;
  if (c >= L) return;
  float a = 0.f;
  for (int q = 0; q < T; q++) a += t[(b * T + q) * L + c] * w[o * T + q];
  out[(b * O + o) * L + c] = a;
}
