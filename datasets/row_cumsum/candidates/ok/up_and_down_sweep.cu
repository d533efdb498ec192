// plan: launch k<<<M, 128>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, float* out, int M, int N) {
  __shared__ float p[256];
  int j = threadIdx.x;
  int r = blockIdx.x * N;
  float carry = 0.f;
  for (int b = 0; b < N; b += 256) {
    for (int u = 0; u < 2; u++) {
      int c = b + j + u * 128;
      p[j + u * 128] = c < N ? x[r + c] : 0.f;
    }
    for (int h = 1; h < 256; h *= 2) {
      __syncthreads();
      int e = (j + 1) * h * 2 - 1;
      if (e < 256) p[e] += p[e - h];
    }
    for (int h = 64; h > 0; h /= 2) {
      __syncthreads();
      int e = (j + 1) * h * 2 - 1;
      if (e + h < 256) p[e + h] += p[e];
    }
    __syncthreads();
    for (int u = 0; u < 2; u++) {
      int c = b + j + u * 128;
      if (c < N) out[r + c] = carry + p[j + u * 128];
    }
    carry += p[255];
    __syncthreads();
  }
}
