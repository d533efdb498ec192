// plan: launch k<<<cdiv(max(1, C * B / 4), 256), 256>>>(x, out, C * B / 4, B, x.s0)
extern "C" __global__ void k(const unsigned char* x, unsigned* out, int n, int B, int S) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  unsigned word = 0;
  for (int u = 0; u < 4; u++) word |= (unsigned)x[(size_t)((4 * i + u) / B) * S + (4 * i + u) % B] << 8 * u;
  out[i] = word;
}
