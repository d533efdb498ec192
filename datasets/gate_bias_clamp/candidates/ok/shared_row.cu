// plan: launch k<<<dim3(cdiv(N, 128), cdiv(M, 16)), 128>>>(x, w, b, out, M, N)
extern "C" __global__ void k(const float* x, const float* w, const float* b, float* out, int M, int N) {
  __shared__ float ws[128];
  __shared__ float bs[128];
  int c = blockIdx.x * 128 + threadIdx.x;
  if (c < N) ws[threadIdx.x] = w[c];
  if (c < N) bs[threadIdx.x] = b[c];
  __syncthreads();
  for (int m = blockIdx.y * 16; m < min((int)blockIdx.y * 16 + 16, M); m++) {
    if (c < N) out[m * N + c] = fminf(fmaxf(x[m * N + c] * ws[threadIdx.x] + bs[threadIdx.x], -1.f), 1.f);
  }
}
