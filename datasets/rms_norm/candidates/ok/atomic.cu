// plan: temp t float32[M]
// plan: fill t 0
// plan: launch k1<<<dim3(cdiv(N, 256), M), 64>>>(x, t, M, N)
// plan: launch k2<<<dim3(cdiv(N, 256), M), 256>>>(x, w, t, out, eps, M, N)
extern "C" __global__ void k1(const float* x, float* t, int M, int N) {
  int c = (blockIdx.x * 64 + threadIdx.x) * 4;
  float a = 0.f;
  for (int u = c; u < min(c + 4, N); u++) a += x[blockIdx.y * N + u] * x[blockIdx.y * N + u];
  if (c < N) atomicAdd(t + blockIdx.y, a);
}
extern "C" __global__ void k2(const float* x, const float* w, const float* t, float* out, float eps, int M, int N) {
  int c = blockIdx.x * 256 + threadIdx.x;
  int i = blockIdx.y * N + c;
  float v = rsqrtf(t[blockIdx.y] / N + eps);
  if (c < N) out[i] = x[i] * v * w[c];
}
