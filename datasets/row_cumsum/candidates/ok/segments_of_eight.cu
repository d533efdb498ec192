// plan: launch k<<<M, 128>>>(x, out, M, N)
extern "C" __global__ void k(const float* x, float* out, int M, int N) {
  __shared__ float p[128];
  int j = threadIdx.x;
  int r = blockIdx.x * N;
  float carry = 0.f;
  for (int b = 0; b < N; b += 1024) {
    int c = b + j * 8;
    float v[8], a = 0.f;
    for (int u = 0; u < 8; u++) {
      if (c + u < N) a += x[r + c + u];
      v[u] = a;
    }
    p[j] = a;
    __syncthreads();
    float before = carry;
    for (int u = 0; u < 128; u++) {
      if (u < j) before += p[u];
      carry += p[u];
    }
    __syncthreads();
    for (int u = 0; u < 8; u++)
      if (c + u < N) out[r + c + u] = before + v[u];
  }
}
