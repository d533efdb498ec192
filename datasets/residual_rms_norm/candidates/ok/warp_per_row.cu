// plan: launch k<<<cdiv(M, 4), dim3(32, 4)>>>(x, r, w, out0, out1, eps, M, N)
extern "C" __global__ void k(const float* x, const float* r, const float* w, float* out0, float* out1, float eps, int M, int N) {
  int m = blockIdx.x * 4 + threadIdx.y;
  if (m >= M) return;
  float a = 0.f;
  for (int c = threadIdx.x; c < N; c += 32) {
    float h = x[m * N + c] + r[m * N + c];
    out0[m * N + c] = h;
    a += h * h;
  }
  for (int d = 16; d > 0; d /= 2) a += __shfl_xor_sync(0xffffffff, a, d);
  float v = rsqrtf(a / N + eps);
  for (int c = threadIdx.x; c < N; c += 32) out1[m * N + c] = out0[m * N + c] * v * w[c];
}
