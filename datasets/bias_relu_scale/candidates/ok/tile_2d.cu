// plan: launch k<<<dim3(cdiv(N, 32), cdiv(M, 8)), dim3(32, 8)>>>(x, b, out, s, M, N)
extern "C" __global__ void k(const float* x, const float* b, float* out, float s, int M, int N) {
  int c = blockIdx.x * 32 + threadIdx.x;
  int m = blockIdx.y * 8 + threadIdx.y;
  if (m >= M || c >= N) return;
  out[m * N + c] = fmaxf(x[m * N + c] + b[c], 0.f) * s;
}
