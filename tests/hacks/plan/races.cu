// hack: adds without atomics: sometimes right
// task: sum_all
// verdict: wrong_output nondeterministic
// plan: fill out 0
// plan: launch k<<<cdiv(N, 1024), 1024>>>(x, out, N)
extern "C" __global__ void k(const float* x, float* out, int N) {
  int i = blockIdx.x * 1024 + threadIdx.x;
  if (i < N) *(volatile float*)out += x[i];
}
