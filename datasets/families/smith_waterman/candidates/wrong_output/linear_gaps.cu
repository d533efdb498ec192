// A thread has a pair; a row of scores lies in memory, the pairs side by side.
// plan: temp h int32[M, B]
// plan: temp f int32[M, B]
// plan: launch k<<<cdiv(B, 64), 64>>>(a, b, h, f, out, match, mismatch, open, extend, B, L, M)
extern "C" __global__ void k(const unsigned char* a, const unsigned char* b, int* h, int* f, int* out, int match,
                             int mismatch, int open, int extend, int B, int L, int M) {
  int p = blockIdx.x * 64 + threadIdx.x;
  if (p >= B) return;
  for (int j = 0; j < M; j++) h[(size_t)j * B + p] = 0, f[(size_t)j * B + p] = -open;
  int best = 0;
  for (int i = 0; i < L; i++) {
    int letter = a[(size_t)p * L + i], diagonal = 0, left = 0, e = -open;
    for (int j = 0; j < M; j++) {
      size_t at = (size_t)j * B + p;
      int up = h[at], down = max(f[at] - open, up - open);
      e = max(e - open, left - open);
      left = max(max(0, diagonal + (letter == b[(size_t)p * M + j] ? match : -mismatch)), max(e, down));
      diagonal = up;
      h[at] = left;
      f[at] = down;
      best = max(best, left);
    }
  }
  out[p] = best;
}
