// plan: temp t float32[M]
// plan: launch k1<<<cdiv(M * N, 256), 256>>>(x, r, out0, M * N)
// plan: launch k2<<<cdiv(M, 64), 64>>>(out0, t, eps, M, N)
// plan: launch k3<<<dim3(cdiv(N, 256), M), 256>>>(out0, t, w, out1, N)
extern "C" __global__ void k1(const float* x, const float* r, float* h, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) h[i] = x[i] + r[i];
}
extern "C" __global__ void k2(const float* h, float* t, float eps, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  float a = 0.f;
  for (int c = 0; c < N; c++) a += h[m * N + c] * h[m * N + c];
  t[m] = rsqrtf(a / N + eps);
}
extern "C" __global__ void k3(const float* h, const float* t, const float* w, float* out, int N) {
  int c = blockIdx.x * 256 + threadIdx.x;
  int i = blockIdx.y * N + c;
  if (c < N) out[i] = h[i] * t[blockIdx.y] * w[c];
}
