// plan: fill out 0
// plan: launch k<<<dim3(cdiv(N, 256), M), 64>>>(x, r, out, M, N)
extern "C" __global__ void k(const float* x, const float* r, float* out, int M, int N) {
  int c = (blockIdx.x * 64 + threadIdx.x) * 4;
  float a = 0.f;
  for (int u = c; u < min(c + 4, N); u++) a += fminf(fmaxf(x[blockIdx.y * N + u] + r[blockIdx.y * N + u], -1.f), 1.f);
  if (c < N) atomicAdd(out + blockIdx.y, a);
}
