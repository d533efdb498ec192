// plan: launch k<<<B, 32>>>(x, out, W)
extern "C" __global__ void k(const float* x, float* out, int W) {
  __shared__ float s[5][W];
  s[0][threadIdx.x] = x[threadIdx.x];
  out[threadIdx.x] = s[0][0];
}
