// plan: temp t float32[M]
// plan: launch k1<<<M, 32>>>(x, t, eps, M, N)
// plan: launch k2<<<cdiv(M * N, 256), 256>>>(x, w, t, out, M, N)
extern "C" __global__ void k1(const float* x, float* t, float eps, int M, int N) {
  int m = blockIdx.x;
  float a = 0.f;
  for (int c = threadIdx.x; c < N; c += 32) a += x[m * N + c] * x[m * N + c];
  for (int h = 16; h > 0; h /= 2) a += __shfl_down_sync(0xffffffff, a, h);
  if (threadIdx.x == 0) t[m] = rsqrtf(a / N + eps);
}
extern "C" __global__ void k2(const float* x, const float* w, const float* t, float* out, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= M * N) return;
  float v = t[i / N];
  out[i] = x[i] * v * w[i % N];
}
