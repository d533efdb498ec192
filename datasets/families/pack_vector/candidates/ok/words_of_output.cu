// The packed bytes are aligned whatever the blocks are: four loads, one store. The last bytes one by one.
// plan: launch k<<<cdiv(cdiv(C * B, 4), 256), 256>>>(x, out, C * B, B, x.s0)
extern "C" __global__ void k(const unsigned char* x, unsigned char* out, int n, int B, int S) {
  int i = (blockIdx.x * 256 + threadIdx.x) * 4;
  if (i >= n) return;
  int c = i / B, b = i % B;
  unsigned word = 0;
  for (int u = 0; u < min(4, n - i); u++) {
    word |= (unsigned)x[(size_t)c * S + b] << 8 * u;
    if (++b == B) b = 0, c++;
  }
  if (i + 4 <= n) {
    *(unsigned*)(out + i) = word;
  } else {
    for (int u = 0; u < n - i; u++) out[i + u] = (unsigned char)(word >> 8 * u);
  }
}
