// plan: launch k<<<dim3(cdiv(N, 32), cdiv(M, 32)), dim3(32, 8)>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, float* out, int M, int N) {
  __shared__ float t[32][33];
  int c = blockIdx.x * 32 + threadIdx.x;
  int m = blockIdx.y * 32 + threadIdx.y;
  for (int u = 0; u < 32; u += 8)
    if (m + u < M && c < N) t[threadIdx.y + u][threadIdx.x] = x[(m + u) * N + c];
  __syncthreads();
  m = blockIdx.y * 32 + threadIdx.x;
  c = blockIdx.x * 32 + threadIdx.y;
  for (int u = 0; u < 32; u += 8)
    if (m < M && c + u < N) out[(c + u) * M + m] = t[threadIdx.x][threadIdx.y + u];
}
