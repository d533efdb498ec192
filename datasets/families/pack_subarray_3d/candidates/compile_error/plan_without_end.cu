// plan: if X % 4 == 0
// plan: launch k<<<cdiv(Z * Y * X, 256), 256>>>(x, out, Z * Y * X)
extern "C" __global__ void k(const unsigned char* x, unsigned char* out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) out[i] = x[i];
}
