// plan: launch k<<<dim3(cdiv(W / 2, 64), H / 2, P), 128>>>(x, out, H, W)
extern "C" __global__ void k(const float* x, float* out, int H, int W) {
  __shared__ float t[128];
  int j = threadIdx.x;
  int c = blockIdx.x * 128 + j;
  int i = (blockIdx.z * H + blockIdx.y * 2) * W + c;
  if (c < W) t[j] = fmaxf(x[i], x[i + W]);
  __syncthreads();
  int d = blockIdx.x * 64 + j;
  if (j < 64 && d < W / 2) out[(blockIdx.z * (H / 2) + blockIdx.y) * (W / 2) + d] = fmaxf(t[j * 2], t[j * 2 + 1]);
}
