// hack: asks for more shared memory than there is
// task: gelu
// verdict: launch_error
// plan: launch k<<<cdiv(N, 256), 256, 1024 * 1024>>>(x, out, N)
extern "C" __global__ void k(const float* x, float* out, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) out[i] = x[i];
}
