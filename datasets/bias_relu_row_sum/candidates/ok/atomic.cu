// plan: fill out 0
// plan: launch k<<<dim3(cdiv(N, 256), M), 64>>>(x, b, out, M, N)
extern "C" __global__ void k(const float* x, const float* b, float* out, int M, int N) {
  int c = (blockIdx.x * 64 + threadIdx.x) * 4;
  float a = 0.f;
  for (int u = c; u < min(c + 4, N); u++) a += fmaxf(x[blockIdx.y * N + u] + b[u], 0.f);
  if (c < N) atomicAdd(out + blockIdx.y, a);
}
