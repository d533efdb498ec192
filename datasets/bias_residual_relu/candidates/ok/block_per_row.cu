// plan: launch k<<<M, 256>>>(x, b, r, out, M, N)
extern "C" __global__ void k(const float* x, const float* b, const float* r, float* out, int M, int N) {
  for (int c = threadIdx.x; c < N; c += 256) {
    int i = blockIdx.x * N + c;
    out[i] = fmaxf(x[i] + b[c] + r[i], 0.f);
  }
}
