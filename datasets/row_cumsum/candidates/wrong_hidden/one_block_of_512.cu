// plan: launch k<<<M, 512>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, float* out, int M, int N) {
  __shared__ float p[512];
  int j = threadIdx.x;
  p[j] = j < N ? x[blockIdx.x * N + j] : 0.f;
  __syncthreads();
  for (int h = 1; h < 512; h *= 2) {
    float v = j >= h ? p[j - h] : 0.f;
    __syncthreads();
    p[j] += v;
    __syncthreads();
  }
  if (j < N) out[blockIdx.x * N + j] = p[j];
}
