// plan: launch k<<<M, 32>>>(x, out, s, M, N)
extern "C" __global__ void k(const float* x, float* out, float s, int M, int N) {
  int m = blockIdx.x;
  int j = threadIdx.x;
  float h = -INFINITY, a = 0.f;
  for (int c = j; c < N; c += 32) h = fmaxf(h, x[m * N + c] * s);
  for (int d = 16; d > 0; d /= 2) h = fmaxf(h, __shfl_xor_sync(0xffffffff, h, d));
  for (int c = j; c < N; c += 32) a += expf(x[m * N + c] * s - h);
  for (int d = 16; d > 0; d /= 2) a += __shfl_xor_sync(0xffffffff, a, d);
  for (int c = j; c < N; c += 32) out[m * N + c] = expf(x[m * N + c] * s - h) / a;
}
