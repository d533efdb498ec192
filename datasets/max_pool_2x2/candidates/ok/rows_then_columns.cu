// plan: temp t float32[P, H / 2, W]
// plan: launch k1<<<dim3(cdiv(W, 128), H / 2, P), 128>>>(x, t, H, W)
// plan: launch k2<<<cdiv(P * (H / 2) * (W / 2), 128), 128>>>(t, out, P * (H / 2), W)
extern "C" __global__ void k1(const float* x, float* t, int H, int W) {
  int c = blockIdx.x * 128 + threadIdx.x;
  int i = (blockIdx.z * H + blockIdx.y * 2) * W + c;
  if (c < W) t[(blockIdx.z * (H / 2) + blockIdx.y) * W + c] = fmaxf(x[i], x[i + W]);
}
extern "C" __global__ void k2(const float* t, float* out, int R, int W) {
  int i = blockIdx.x * 128 + threadIdx.x;
  int v = W / 2;
  if (i < R * v) out[i] = fmaxf(t[i / v * W + i % v * 2], t[i / v * W + i % v * 2 + 1]);
}
