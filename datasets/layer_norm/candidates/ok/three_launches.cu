// plan: temp a float32[M]
// plan: temp q float32[M]
// plan: launch k1<<<M, 32>>>(x, a, N)
// plan: launch k2<<<cdiv(M, 64), 64>>>(x, a, q, eps, M, N)
// plan: launch k3<<<dim3(cdiv(N, 256), M), 256>>>(x, w, b, a, q, out, N)
extern "C" __global__ void k1(const float* x, float* a, int N) {
  float s = 0.f;
  for (int c = threadIdx.x; c < N; c += 32) s += x[blockIdx.x * N + c];
  for (int h = 16; h > 0; h /= 2) s += __shfl_down_sync(0xffffffff, s, h);
  if (threadIdx.x == 0) a[blockIdx.x] = s / N;
}
extern "C" __global__ void k2(const float* x, const float* a, float* q, float eps, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  float s = 0.f;
  for (int c = 0; c < N; c++) s += (x[m * N + c] - a[m]) * (x[m * N + c] - a[m]);
  q[m] = rsqrtf(s / N + eps);
}
extern "C" __global__ void k3(const float* x, const float* w, const float* b, const float* a, const float* q, float* out, int N) {
  int c = blockIdx.x * 256 + threadIdx.x;
  int m = blockIdx.y;
  if (c < N) out[m * N + c] = (x[m * N + c] - a[m]) * q[m] * w[c] + b[c];
}
