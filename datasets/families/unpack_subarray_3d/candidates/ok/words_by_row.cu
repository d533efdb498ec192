// A warp has a row. Rows outside of the box are copied in words where rows are whole words; the others in
// three pieces: before the box, in it, behind it.
// plan: launch k<<<cdiv(L * M, 4), dim3(32, 4)>>>(b, p, out, L, M, N, Z, Y, X)
__device__ void copy(const unsigned char* from, unsigned char* to, int n) {
  for (int c = threadIdx.x; c < n; c += 32) to[c] = from[c];
}
extern "C" __global__ void k(const unsigned char* b, const unsigned char* p, unsigned char* out, int L, int M, int N,
                             int Z, int Y, int X) {
  int row = blockIdx.x * 4 + threadIdx.y;
  if (row >= L * M) return;
  int z = row / M - (L - Z) / 2, r = row % M - (M - Y) / 2, left = (N - X) / 2;
  const unsigned char* from = b + (size_t)row * N;
  unsigned char* to = out + (size_t)row * N;
  if (z >= 0 && z < Z && r >= 0 && r < Y) {
    copy(from, to, left);
    copy(p + ((size_t)z * Y + r) * X, to + left, X);
    copy(from + left + X, to + left + X, N - X - left);
  } else if (N % 4 == 0) {
    for (int c = threadIdx.x; c < N / 4; c += 32) ((unsigned*)to)[c] = ((const unsigned*)from)[c];
  } else {
    copy(from, to, N);
  }
}
