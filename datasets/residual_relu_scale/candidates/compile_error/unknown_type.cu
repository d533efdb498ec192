// plan: launch k<<<cdiv(M * N, 256), 256>>>(x, r, out, s, M, N)
extern "C" __global__ void k(const float* x, const float* r, float* out, float s, int M, int N) {
  integer i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * N) out[i] = fmaxf(x[i] + r[i], 0.f) * s;
}
