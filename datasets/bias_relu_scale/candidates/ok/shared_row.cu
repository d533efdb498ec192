// plan: launch k<<<dim3(cdiv(N, 128), cdiv(M, 16)), 128>>>(x, b, out, s, M, N)
extern "C" __global__ void k(const float* x, const float* b, float* out, float s, int M, int N) {
  __shared__ float bs[128];
  int c = blockIdx.x * 128 + threadIdx.x;
  if (c < N) bs[threadIdx.x] = b[c];
  __syncthreads();
  for (int m = blockIdx.y * 16; m < min((int)blockIdx.y * 16 + 16, M); m++) {
    if (c < N) out[m * N + c] = fmaxf(x[m * N + c] + bs[threadIdx.x], 0.f) * s;
  }
}
