// plan: fill out 0
// plan: launch k<<<cdiv(Z * Y, 4), dim3(32, 4)>>>(p, out, L, M, N, Z, Y, X)
extern "C" __global__ void k(const unsigned char* p, unsigned char* out, int L, int M, int N, int Z, int Y, int X) {
  int row = blockIdx.x * 4 + threadIdx.y;
  if (row >= Z * Y) return;
  int z = row / Y + (L - Z) / 2, r = row % Y + (M - Y) / 2;
  unsigned char* to = out + ((size_t)z * M + r) * N + (N - X) / 2;
  for (int c = threadIdx.x; c < X; c += 32) to[c] = p[(size_t)row * X + c];
}
