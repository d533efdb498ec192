// plan: launch k<<<dim3(cdiv(N, 16), cdiv(M, 16)), dim3(16, 16)>>>(x, w, out, M, N, K)
extern "C" __global__ void k(const float* x, const float* w, float* out, int M, int N, int K) {
  __shared__ float a[16][16], b[16][17];
  int tx = threadIdx.x, ty = threadIdx.y;
  int c = blockIdx.x * 16 + tx, m = blockIdx.y * 16 + ty;
  float s = 0.f;
  for (int q = 0; q + 16 <= K; q += 16) {
    a[ty][tx] = m < M && q + tx < K ? x[m * K + q + tx] : 0.f;
    b[ty][tx] = c < N && q + ty < K ? w[(q + ty) * N + c] : 0.f;
    __syncthreads();
    for (int u = 0; u < 16; u++) s += a[ty][u] * b[u][tx];
    __syncthreads();
  }
  if (m < M && c < N) out[m * N + c] = s;
}
