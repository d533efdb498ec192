// The CPU's form of diagonals_of_a_warp: lanes are not rows of one pair but 16 pairs, whose letters lie side
// by side, so that each step of the recurrence is a vector operation over pairs and no thread waits.
// plan: temp t uint8[cdiv(B, 16), M, 16]
// plan: temp h int32[cdiv(B, 16), M, 16]
// plan: temp f int32[cdiv(B, 16), M, 16]
// plan: launch k<<<cdiv(B, 16), 1>>>(a, b, t, h, f, out, match, mismatch, open, extend, B, L, M)
extern "C" __global__ void k(const unsigned char* a, const unsigned char* b, unsigned char* t, int* h, int* f, int* out,
                             int match, int mismatch, int open, int extend, int B, int L, int M) {
  int first = blockIdx.x * 16, pairs = min(16, B - first), best[16];
  t += (size_t)first * M;
  h += (size_t)first * M;
  f += (size_t)first * M;
  for (int p = 0; p < 16; p++) {
    best[p] = 0;
    for (int j = 0; j < M; j++) {
      t[16 * j + p] = p < pairs ? b[(size_t)(first + p) * M + j] : 0;
      h[16 * j + p] = 0;
      f[16 * j + p] = -open;
    }
  }
  for (int i = 0; i < L; i++) {
    int letter[16], diagonal[16], left[16], e[16];
    for (int p = 0; p < 16; p++) {
      letter[p] = p < pairs ? a[(size_t)(first + p) * L + i] : 255;
      diagonal[p] = left[p] = 0;
      e[p] = -open;
    }
    for (int j = 0; j < M; j++)
      for (int p = 0; p < 16; p++) {
        int at = 16 * j + p, up = h[at], down = max(f[at] - extend, up - open);
        int score = letter[p] == t[at] ? match : -mismatch;
        e[p] = max(e[p] - extend, left[p] - open);
        left[p] = max(max(0, diagonal[p] + score), max(e[p], down));
        diagonal[p] = up;
        h[at] = left[p];
        f[at] = down;
        best[p] = max(best[p], left[p]);
      }
  }
  for (int p = 0; p < pairs; p++) out[first + p] = best[p];
}
