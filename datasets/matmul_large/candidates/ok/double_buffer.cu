// plan: launch k<<<dim3(cdiv(N, 16), cdiv(M, 16)), dim3(16, 16)>>>(x, w, out, M, N, K)
extern "C" __global__ void k(const float* x, const float* w, float* out, int M, int N, int K) {
  __shared__ float a[2][16][16], b[2][16][17];
  int tx = threadIdx.x, ty = threadIdx.y;
  int c = blockIdx.x * 16 + tx, m = blockIdx.y * 16 + ty;
  a[0][ty][tx] = m < M && tx < K ? x[m * K + tx] : 0.f;
  b[0][ty][tx] = c < N && ty < K ? w[ty * N + c] : 0.f;
  __syncthreads();
  float s = 0.f;
  int n = 0;
  for (int q = 16; q < K + 16; q += 16) {
    float v = m < M && q + tx < K ? x[m * K + q + tx] : 0.f;
    float z = c < N && q + ty < K ? w[(q + ty) * N + c] : 0.f;
    for (int u = 0; u < 16; u++) s += a[n][ty][u] * b[n][u][tx];
    n = 1 - n;
    a[n][ty][tx] = v;
    b[n][ty][tx] = z;
    __syncthreads();
  }
  if (m < M && c < N) out[m * N + c] = s;
}
