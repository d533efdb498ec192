// plan: launch k<<<cdiv(N, 32), dim3(32, 8)>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, float* out, int M, int N) {
  __shared__ float p[8][33];
  int c = blockIdx.x * 32 + threadIdx.x;
  float a = 0.f;
  if (c < N)
    for (int m = threadIdx.y; m < M; m += 8) a += x[m * N + c];
  p[threadIdx.y][threadIdx.x] = a;
  __syncthreads();
  if (threadIdx.y > 0 || c >= N) return;
  for (int u = 1; u < 8; u++) a += p[u][threadIdx.x];
  out[c] = a;
}
