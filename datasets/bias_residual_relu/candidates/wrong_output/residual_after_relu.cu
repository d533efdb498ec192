// plan: launch k<<<dim3(cdiv(N, 256), M), 256>>>(x, b, r, out, M, N)
extern "C" __global__ void k(const float* x, const float* b, const float* r, float* out, int M, int N) {
  int c = blockIdx.x * 256 + threadIdx.x;
  int i = blockIdx.y * N + c;
  if (c < N) out[i] = fmaxf(x[i] + b[c], 0.f) + r[i];
}
