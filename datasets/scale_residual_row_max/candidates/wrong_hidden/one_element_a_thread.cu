// plan: launch k<<<M, 512>>>(x, r, out, s, M, N)
extern "C" __global__ void k(const float* x, const float* r, float* out, float s, int M, int N) {
  __shared__ float p[512];
  int j = threadIdx.x;
  p[j] = j < N ? x[blockIdx.x * N + j] * s + r[blockIdx.x * N + j] : -INFINITY;
  __syncthreads();
  for (int h = 256; h > 0; h /= 2) {
    if (j < h) p[j] = fmaxf(p[j], p[j + h]);
    __syncthreads();
  }
  if (j == 0) out[blockIdx.x] = p[0];
}
