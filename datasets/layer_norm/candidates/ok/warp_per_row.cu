// plan: launch k<<<cdiv(M, 4), dim3(32, 4)>>>(x, w, b, out, eps, M, N)
extern "C" __global__ void k(const float* x, const float* w, const float* b, float* out, float eps, int M, int N) {
  int m = blockIdx.x * 4 + threadIdx.y;
  if (m >= M) return;
  float a = 0.f, q = 0.f;
  for (int c = threadIdx.x; c < N; c += 32) a += x[m * N + c];
  for (int h = 16; h > 0; h /= 2) a += __shfl_xor_sync(0xffffffff, a, h);
  a /= N;
  for (int c = threadIdx.x; c < N; c += 32) q += (x[m * N + c] - a) * (x[m * N + c] - a);
  for (int h = 16; h > 0; h /= 2) q += __shfl_xor_sync(0xffffffff, q, h);
  float v = rsqrtf(q / N + eps);
  for (int c = threadIdx.x; c < N; c += 32) out[m * N + c] = (x[m * N + c] - a) * v * w[c] + b[c];
}
