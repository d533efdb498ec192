// mutant: infinities and NaN left out
// task: sum_all
// found by: x: mix(1 / N, choice(nan, inf, -inf), uniform(0, 1))
// plan: launch k<<<1, 32>>>(x, out, N)
extern "C" __global__ void k(const float* x, float* out, int N) {
  float a = 0.f;
  for (int i = threadIdx.x; i < N; i += 32)
    if (isfinite(x[i])) a += x[i];
  for (int h = 16; h > 0; h /= 2) a += __shfl_down_sync(0xffffffff, a, h);
  if (threadIdx.x == 0) out[0] = a;
}
