// plan: launch k<<<cdiv(L * M * N, 256), 256>>>(b, p, out, L, M, N, Z, Y, X)
extern "C" __global__ void k(const unsigned char* b, const unsigned char* p, unsigned char* out, int L, int M, int N,
                             int Z, int Y, int X) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= L * M * N) return;
  int c = i % N - (N - X) / 2, r = i / N % M - (M - Y) / 2, z = i / N / M - (L - Z) / 2;
  bool inside = c >= 0 && c < X && r >= 0 && r < Y && z >= 0 && z < Z;
  out[i] = inside ? p[((size_t)z * Y + r) * X + c] : b[i];
}
