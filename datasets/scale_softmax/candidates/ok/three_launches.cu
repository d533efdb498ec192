// plan: temp t float32[M]
// plan: launch k1<<<cdiv(M, 64), 64>>>(x, t, s, M, N)
// plan: launch k2<<<cdiv(M * N, 256), 256>>>(x, t, out, s, M, N)
// plan: launch k3<<<M, 32>>>(out, N)
extern "C" __global__ void k1(const float* x, float* t, float s, int M, int N) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m >= M) return;
  float h = -INFINITY;
  for (int c = 0; c < N; c++) h = fmaxf(h, x[m * N + c] * s);
  t[m] = h;
}
extern "C" __global__ void k2(const float* x, const float* t, float* out, float s, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * N) out[i] = expf(x[i] * s - t[i / N]);
}
extern "C" __global__ void k3(float* out, int N) {
  float a = 0.f;
  float* o = out + blockIdx.x * N;
  for (int c = threadIdx.x; c < N; c += 32) a += o[c];
  for (int d = 16; d > 0; d /= 2) a += __shfl_xor_sync(0xffffffff, a, d);
  for (int c = threadIdx.x; c < N; c += 32) o[c] /= a;
}
