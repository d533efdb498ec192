// plan: launch k<<<M, 64>>>(x, out, s, M, N)
extern "C" __global__ void k(const float* x, float* out, float s, int M, int N) {
  __shared__ float p[64];
  int m = blockIdx.x;
  int j = threadIdx.x;
  float a = -INFINITY;
  for (int c = j; c < N; c += 64) a = fmaxf(a, x[m * N + c] * s);
  p[j] = a;
  __syncthreads();
  for (int d = 32; d > 0; d /= 2) {
    if (j < d) p[j] = fmaxf(p[j], p[j + d]);
    __syncthreads();
  }
  float h = p[0];
  __syncthreads();
  a = 0.f;
  for (int c = j; c < N; c += 64) a += expf(x[m * N + c] * s - h);
  p[j] = a;
  __syncthreads();
  for (int d = 32; d > 0; d /= 2) {
    if (j < d) p[j] += p[j + d];
    __syncthreads();
  }
  for (int c = j; c < N; c += 64) out[m * N + c] = expf(x[m * N + c] * s - h) / p[0];
}
