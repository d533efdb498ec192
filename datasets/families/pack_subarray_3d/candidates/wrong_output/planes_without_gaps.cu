// plan: launch k<<<cdiv(Z * Y * X, 256), 256>>>(x, out, Z * Y * X, Y, X, x.s1, x.s0)
extern "C" __global__ void k(const unsigned char* x, unsigned char* out, int n, int Y, int X, int R, int P) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) out[i] = x[(size_t)(i / X) * R + i % X];
}
