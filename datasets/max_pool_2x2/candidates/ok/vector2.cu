// plan: if W % 2 == 0
// plan: launch k2<<<dim3(cdiv(W / 2, 128), H / 2, P), 128>>>(x, out, H, W)
// plan: else
// plan: launch k<<<dim3(cdiv(W / 2, 128), H / 2, P), 128>>>(x, out, H, W)
// plan: end
extern "C" __global__ void k2(const float* x, float* out, int H, int W) {
  int c = blockIdx.x * 128 + threadIdx.x;
  if (c >= W / 2) return;
  const float2* p = (const float2*)(x + (blockIdx.z * H + blockIdx.y * 2) * W);
  float2 a = p[c], b = p[W / 2 + c];
  out[(blockIdx.z * (H / 2) + blockIdx.y) * (W / 2) + c] = fmaxf(fmaxf(a.x, a.y), fmaxf(b.x, b.y));
}
extern "C" __global__ void k(const float* x, float* out, int H, int W) {
  int c = blockIdx.x * 128 + threadIdx.x;
  if (c >= W / 2) return;
  const float* p = x + (blockIdx.z * H + blockIdx.y * 2) * W + c * 2;
  float a = fmaxf(p[0], p[1]);
  out[(blockIdx.z * (H / 2) + blockIdx.y) * (W / 2) + c] = fmaxf(a, fmaxf(p[W], p[W + 1]));
}
