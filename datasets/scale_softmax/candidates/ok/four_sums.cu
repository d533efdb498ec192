// plan: launch k<<<cdiv(M, 32), 32>>>(x, out, s, M, N)
extern "C" __global__ void k(const float* x, float* out, float s, int M, int N) {
  int m = blockIdx.x * 32 + threadIdx.x;
  if (m >= M) return;
  float* o = out + m * N;
  float h = x[m * N] * s;
  for (int c = 1; c < N; c++) {
    float v = x[m * N + c] * s;
    if (v > h) h = v;
  }
  for (int c = 0; c < N; c++) o[c] = expf(x[m * N + c] * s - h);
  float a = 0.f, a1 = 0.f, a2 = 0.f, a3 = 0.f;
  int c = 0;
  for (; c + 4 <= N; c += 4) {
    a += o[c];
    a1 += o[c + 1];
    a2 += o[c + 2];
    a3 += o[c + 3];
  }
  for (; c < N; c++) a += o[c];
  a += a1 + a2 + a3;
  for (c = 0; c < N; c++) o[c] /= a;
}
