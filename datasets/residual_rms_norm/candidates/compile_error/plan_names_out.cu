// plan: launch k<<<cdiv(M, 64), 64>>>(x, r, w, out, eps, M, N)
extern "C" __global__ void k(const float* x, const float* r, const float* w, float* out, float eps, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m < M) out[m] = x[m] + r[m] + w[0] + eps;
}
