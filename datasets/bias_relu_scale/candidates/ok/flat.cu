// plan: launch k<<<cdiv(M * N, 256), 256>>>(x, b, out, s, M, N)
extern "C" __global__ void k(const float* x, const float* b, float* out, float s, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * N) out[i] = fmaxf(x[i] + b[i % N], 0.f) * s;
}
