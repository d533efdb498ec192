// A warp has a pair, a lane a row: lane r works one column behind lane r - 1 and gets its scores by a
// shuffle. The last row of 32 lies in memory for the next 32.
// plan: temp h int32[B, M]
// plan: temp f int32[B, M]
// plan: launch k<<<B, 32>>>(a, b, h, f, out, match, mismatch, open, extend, L, M)
extern "C" __global__ void k(const unsigned char* a, const unsigned char* b, int* h, int* f, int* out, int match,
                             int mismatch, int open, int extend, int L, int M) {
  int lane = threadIdx.x, best = 0;
  a += (size_t)blockIdx.x * L;
  b += (size_t)blockIdx.x * M;
  h += (size_t)blockIdx.x * M;
  f += (size_t)blockIdx.x * M;
  for (int first = 0; first < L; first += 32) {
    int row = first + lane, letter = row < L ? a[row] : 255;
    int left = 0, e = -open, diagonal = 0, mine = 0, mine_down = -open;
    for (int t = 0; t < M + 31; t++) {
      int up = __shfl_up_sync(0xffffffff, mine, 1), down = __shfl_up_sync(0xffffffff, mine_down, 1), j = t - lane;
      if (lane == 0 && j < M) up = first ? h[j] : 0, down = first ? f[j] : -open;
      if (j < 0 || j >= M) continue;
      down = max(down - extend, up - open);
      e = max(e - extend, left - open);
      left = max(max(0, diagonal + (letter == b[j] ? match : -mismatch)), max(e, down));
      diagonal = up;
      mine = left;
      mine_down = down;
      if (row < L) best = max(best, left);
      if (lane == 31) h[j] = left, f[j] = down;
    }
    __syncwarp();
  }
  for (int d = 16; d > 0; d /= 2) best = max(best, __shfl_xor_sync(0xffffffff, best, d));
  if (lane == 0) out[blockIdx.x] = best;
}
