// plan: launch k<<<cdiv(M, 64), 64>>>(x, w, b, out, eps, M, N)
__device__ scale(float v, float w, float b) {
  return v * w + b;
}
extern "C" __global__ void k(const float* x, const float* w, const float* b, float* out, float eps, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m < M) out[m * N] = scale(x[m * N], w[0], b[0] + eps);
}
