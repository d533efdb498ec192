// plan: launch k<<<M, 64>>>(x, r, out, s, M, N)
extern "C" __global__ void k(const float* x, const float* r, float* out, float s, int M, int N) {
  __shared__ float p[64];
  int m = blockIdx.x;
  int j = threadIdx.x;
  float a = -INFINITY;
  for (int c = j; c < N; c += 64) a = fmaxf(a, x[m * N + c] * s + r[m * N + c]);
  p[j] = a;
  __syncthreads();
  for (int h = 32; h > 0; h /= 2) {
    if (j < h) p[j] = fmaxf(p[j], p[j + h]);
    __syncthreads();
  }
  if (j == 0) out[m] = p[0];
}
