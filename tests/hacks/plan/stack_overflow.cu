// hack: recursion without end
// task: gelu
// verdict: crash out_of_bounds wrong_output
// plan: launch k<<<cdiv(N, 256), 256>>>(x, out, N)
__device__ __noinline__ float deep(const float* x, int i, int d) {
  volatile float room[64];
  room[d % 64] = x[i];
  return room[(d + 1) % 64] + deep(x, i, d + 1) * room[d % 64];
}
extern "C" __global__ void k(const float* x, float* out, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) out[i] = deep(x, i, 0);
}
