// plan: launch k<<<M, 512>>>(x, out, s, M, N)
extern "C" __global__ void k(const float* x, float* out, float s, int M, int N) {
  __shared__ float p[512];
  int j = threadIdx.x;
  int i = blockIdx.x * N + j;
  p[j] = j < N ? x[i] * s : -INFINITY;
  __syncthreads();
  for (int d = 256; d > 0; d /= 2) {
    if (j < d) p[j] = fmaxf(p[j], p[j + d]);
    __syncthreads();
  }
  float e = j < N ? expf(x[i] * s - p[0]) : 0.f;
  __syncthreads();
  p[j] = e;
  __syncthreads();
  for (int d = 256; d > 0; d /= 2) {
    if (j < d) p[j] += p[j + d];
    __syncthreads();
  }
  if (j < N) out[i] = e / p[0];
}
