// plan: launch k<<<M, 256>>>(x, b, r, out, M, N)
extern "C" __global__ void k(const float* x, const float* b, const float* r, float* out, int M, int N) {
  for (int u = 0; u < 2; u++) {
    int c = threadIdx.x + u * 256;
    int i = blockIdx.x * N + c;
    if (c < N) out[i] = fmaxf(x[i] + b[c] + r[i], 0.f);
  }
}
