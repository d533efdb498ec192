// plan: launch k<<<dim3(cdiv(N, 16), cdiv(M, 16)), dim3(16, 16)>>>(x, w, v, out, M, N, K)
extern "C" __global__ void k(const float* x, const float* w, const float* v, float* out, int M, int N, int K) {
  __shared__ float s[16][16], t[16][17], u[16][17];
  int tx = threadIdx.x, ty = threadIdx.y;
  int c = blockIdx.x * 16 + tx, m = blockIdx.y * 16 + ty;
  float a = 0.f, b = 0.f;
  for (int q = 0; q < K; q += 16) {
    bool in = c < N && q + ty < K;
    s[ty][tx] = m < M && q + tx < K ? x[m * K + q + tx] : 0.f;
    t[ty][tx] = in ? w[(q + ty) * N + c] : 0.f;
    u[ty][tx] = in ? v[(q + ty) * N + c] : 0.f;
    __syncthreads();
    for (int e = 0; e < 16; e++) {
      a += s[ty][e] * t[e][tx];
      b += s[ty][e] * u[e][tx];
    }
    __syncthreads();
  }
  if (m < M && c < N) out[m * N + c] = a / (1.f + expf(-a)) * b;
}
