// hack: a kernel that never ends
// task: gelu
// verdict: timeout
// plan: launch k<<<cdiv(N, 256), 256>>>(x, out, N)
extern "C" __global__ void k(const float* x, float* out, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  volatile float* o = out;
  while (o[0] != 12345.f) o[0] = (float)i;
}
