// plan: launch k<<<cdiv(M, 4), dim3(32, 4)>>>(x, r, out, s, M, N)
extern "C" __global__ void k(const float* x, const float* r, float* out, float s, int M, int N) {
  int m = blockIdx.x * 4 + threadIdx.y;
  if (m >= M) return;
  float a = -INFINITY;
  for (int c = threadIdx.x; c < N; c += 32) a = fmaxf(a, x[m * N + c] * s + r[m * N + c]);
  for (int h = 16; h > 0; h /= 2) a = fmaxf(a, __shfl_xor_sync(0xffffffff, a, h));
  if (threadIdx.x == 0) out[m] = a;
}
