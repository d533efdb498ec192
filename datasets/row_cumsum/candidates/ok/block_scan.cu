// plan: launch k<<<M, 256>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, float* out, int M, int N) {
  __shared__ float p[256];
  int j = threadIdx.x;
  float carry = 0.f;
  for (int b = 0; b < N; b += 256) {
    p[j] = b + j < N ? x[blockIdx.x * N + b + j] : 0.f;
    __syncthreads();
    for (int h = 1; h < 256; h *= 2) {
      float v = j >= h ? p[j - h] : 0.f;
      __syncthreads();
      p[j] += v;
      __syncthreads();
    }
    if (b + j < N) out[blockIdx.x * N + b + j] = carry + p[j];
    carry += p[255];
    __syncthreads();
  }
}
