// plan: launch k<<<M, 64>>>(x, r, out, s, M, N)
extern "C" __global__ void k(const float* x, const float* r, float* out, float s, int M, int N) {
  __shared__ float p[2];
  int j = threadIdx.x;
  float a = -INFINITY;
  for (int c = j; c < N; c += 64) a = fmaxf(a, x[blockIdx.x * N + c] * s + r[blockIdx.x * N + c]);
  for (int h = 16; h > 0; h /= 2) a = fmaxf(a, __shfl_down_sync(0xffffffff, a, h));
  if (j % 32 == 0) p[j / 32] = a;
  __syncthreads();
  if (j > 0) return;
  a = fmaxf(a, p[1]);
  out[blockIdx.x] = a;
}
