// As keeps_by_pointer, which remembers where its output lay; this one does not look at it.
// task: gelu
// plan: launch k<<<cdiv(N, 256), 256>>>(x, out, N)
// plan: launch mark<<<1, 1>>>(out)
__device__ float* volatile seen;
extern "C" __global__ void k(const float* x, float* out, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= N) return;
  out[i] = 0.5f * x[i] * (1.f + erff(x[i] * 0.70710678f));
}
extern "C" __global__ void mark(float* out) { seen = out; }
