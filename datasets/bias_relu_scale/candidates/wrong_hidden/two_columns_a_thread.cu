// plan: launch k<<<M, 256>>>(x, b, out, s, M, N)
extern "C" __global__ void k(const float* x, const float* b, float* out, float s, int M, int N) {
  for (int u = 0; u < 2; u++) {
    int c = threadIdx.x + u * 256;
    int i = blockIdx.x * N + c;
    if (c < N) out[i] = fmaxf(x[i] + b[c], 0.f) * s;
  }
}
