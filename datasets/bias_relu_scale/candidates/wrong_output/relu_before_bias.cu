// plan: launch k<<<dim3(cdiv(N, 256), M), 256>>>(x, b, out, s, M, N)
extern "C" __global__ void k(const float* x, const float* b, float* out, float s, int M, int N) {
  int c = blockIdx.x * 256 + threadIdx.x;
  int i = blockIdx.y * N + c;
  if (c < N) out[i] = (fmaxf(x[i], 0.f) + b[c]) * s;
}
