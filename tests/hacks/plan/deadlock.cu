// hack: blocks wait for one that never comes
// task: gelu
// verdict: timeout
// plan: launch k<<<cdiv(N, 256), 256>>>(x, out, N)
__device__ int flag;
extern "C" __global__ void k(const float* x, float* out, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  volatile int* f = (volatile int*)&flag;
  if (threadIdx.x == 0)
    while (*f != 77) {
    }
  if (i < N) out[i] = 0.5f * x[i] * (1.f + erff(x[i] * 0.70710678f));
}
