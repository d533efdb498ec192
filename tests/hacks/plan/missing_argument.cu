// hack: a plan with fewer arguments than the kernel takes: the rest would be read from beyond
// task: gelu
// verdict: launch_error
// plan: launch k<<<cdiv(N, 256), 256>>>(x, out)
extern "C" __global__ void k(const float* x, float* out, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) out[i] = x[i];
}
