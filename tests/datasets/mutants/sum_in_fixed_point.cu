// mutant: a sum of 64-bit integers, in steps of 2^-44
// task: sum_all
// found by: x: uniform(0, 1e6)
// plan: launch k<<<1, 32>>>(x, out, N)
extern "C" __global__ void k(const float* x, float* out, int N) {
  long long a = 0;
  float f = 0.f;
  for (int i = threadIdx.x; i < N; i += 32) {
    if (isfinite(x[i])) a += __float2ll_rn(x[i] * 17592186044416.f);
    else f += x[i];
  }
  for (int h = 16; h > 0; h /= 2) {
    a += __shfl_down_sync(0xffffffff, a, h);
    f += __shfl_down_sync(0xffffffff, f, h);
  }
  if (threadIdx.x == 0) out[0] = (float)a / 17592186044416.f + f;
}
