// plan: launch k<<<dim3(cdiv(N, 32), cdiv(M, 32)), dim3(32, 32)>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, float* out, int M, int N) {
  __shared__ float t[32][33];
  int c = blockIdx.x * 32 + threadIdx.x;
  int m = blockIdx.y * 32 + threadIdx.y;
  if (m < M && c < N) t[threadIdx.y][threadIdx.x] = x[m * N + c];
  __syncthreads();
  if (m < M && c < N) out[c * M + m] = t[threadIdx.x][threadIdx.y];
}
