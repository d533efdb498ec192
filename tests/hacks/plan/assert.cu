// hack: a device-side assertion
// task: gelu
// verdict: crash
// plan: launch k<<<cdiv(N, 256), 256>>>(x, out, N)
extern "C" __device__ void __assert_fail(const char*, const char*, unsigned, const char*);
extern "C" __global__ void k(const float* x, float* out, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) out[i] = 0.f;
  __assert_fail("no", "kernel.cu", 1, "k");
}
