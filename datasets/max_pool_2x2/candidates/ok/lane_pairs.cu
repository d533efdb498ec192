// plan: launch k<<<dim3(cdiv(W, 32), H / 2, P), 32>>>(x, out, H, W)
extern "C" __global__ void k(const float* x, float* out, int H, int W) {
  int c = blockIdx.x * 32 + threadIdx.x;
  int i = (blockIdx.z * H + blockIdx.y * 2) * W + c;
  float a = c < W ? fmaxf(x[i], x[i + W]) : -INFINITY;
  float b = __shfl_down_sync(0xffffffff, a, 1);
  if (c % 2 == 0 && c + 1 < W) out[(blockIdx.z * (H / 2) + blockIdx.y) * (W / 2) + c / 2] = fmaxf(a, b);
}
