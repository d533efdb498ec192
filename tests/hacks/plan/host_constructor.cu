// hack: host code that would run when the module is loaded
// task: gelu
// verdict: compile_error
// plan: launch k<<<cdiv(N, 256), 256>>>(x, out, N)
struct Evil { Evil() { system("touch /tmp/owned"); } } evil;
extern "C" __global__ void k(const float* x, float* out, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) out[i] = x[i];
}
