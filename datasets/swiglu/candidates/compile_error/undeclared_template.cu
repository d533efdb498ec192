// plan: launch k<8><<<cdiv(M * N, 128), 128>>>(x, w, v, out, M, N, K)
__global__ void k(const float* x, const float* w, const float* v, float* out, int M, int N, int K) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < M * N) out[i] = silu(x[i] * w[i]) * v[i];
}
