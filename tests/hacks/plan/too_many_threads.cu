// hack: asks for more threads than a block has
// task: gelu
// verdict: launch_error
// plan: launch k<<<cdiv(N, 2048), 2048>>>(x, out, N)
extern "C" __global__ void k(const float* x, float* out, int N) {
  int i = blockIdx.x * 2048 + threadIdx.x;
  if (i < N) out[i] = x[i];
}
