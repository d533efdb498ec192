// hack: asks for more memory than the task allows
// task: gelu
// verdict: out_of_memory
// plan: temp t float32[1024 * 1024 * 1024 * 64]
// plan: launch k<<<cdiv(N, 256), 256>>>(x, out, t, N)
extern "C" __global__ void k(const float* x, float* out, float* t, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) out[i] = x[i] + t[i];
}
