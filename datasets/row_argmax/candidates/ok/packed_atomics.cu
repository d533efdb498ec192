// plan: temp t int64[M]
// plan: fill t 0
// plan: launch k1<<<dim3(cdiv(N, 64), M), 64>>>(x, t, N)
// plan: launch k2<<<cdiv(M, 64), 64>>>(t, out, M)
extern "C" __global__ void k1(const float* x, unsigned long long* t, int N) {
  int c = blockIdx.x * 64 + threadIdx.x;
  if (c >= N) return;
  unsigned v = __float_as_uint(x[blockIdx.y * N + c] + 0.f);
  v = v >> 31 ? ~v : v | 0x80000000u;
  atomicMax(t + blockIdx.y, (unsigned long long)v << 32 | (0xffffffffu - c));
}
extern "C" __global__ void k2(const unsigned long long* t, long long* out, int M) {
  int m = blockIdx.x * 64 + threadIdx.x;
  if (m < M) out[m] = 0xffffffffu - (unsigned)t[m];
}
