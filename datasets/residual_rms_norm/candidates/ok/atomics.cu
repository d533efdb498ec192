// plan: temp t float32[M]
// plan: fill t 0
// plan: launch k1<<<dim3(cdiv(N, 512), M), 64>>>(x, r, out0, t, N)
// plan: launch k2<<<M, 128>>>(out0, t, w, out1, eps, N)
extern "C" __global__ void k1(const float* x, const float* r, float* h, float* t, int N) {
  int b = (blockIdx.x * 64 + threadIdx.x) * 8;
  float a = 0.f;
  for (int c = b; c < min(b + 8, N); c++) {
    int i = blockIdx.y * N + c;
    h[i] = x[i] + r[i];
    a += h[i] * h[i];
  }
  if (b < N) atomicAdd(t + blockIdx.y, a);
}
extern "C" __global__ void k2(const float* h, const float* t, const float* w, float* out, float eps, int N) {
  float v = rsqrtf(t[blockIdx.x] / N + eps);
  for (int c = threadIdx.x; c < N; c += 128) out[blockIdx.x * N + c] = h[blockIdx.x * N + c] * v * w[c];
}
