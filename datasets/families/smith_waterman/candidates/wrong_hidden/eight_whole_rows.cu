// A thread has a pair and takes eight rows at a time through all columns, their scores in registers: an
// eighth of the traffic. From sm_90 on a maximum of three and a sum in a maximum are one instruction each.
// plan: temp h int32[M, B]
// plan: temp f int32[M, B]
// plan: launch k<<<cdiv(B, 64), 64>>>(a, b, h, f, out, match, mismatch, open, extend, B, L, M)
#if __CUDA_ARCH__ >= 900
__device__ int add_max(int a, int b, int c) { return __viaddmax_s32(a, b, c); }
__device__ int max3_relu(int a, int b, int c) { return __vimax3_s32_relu(a, b, c); }
#else
__device__ int add_max(int a, int b, int c) { return max(a + b, c); }
__device__ int max3_relu(int a, int b, int c) { return max(max(a, b), max(c, 0)); }
#endif
extern "C" __global__ void k(const unsigned char* a, const unsigned char* b, int* h, int* f, int* out, int match,
                             int mismatch, int open, int extend, int B, int L, int M) {
  int p = blockIdx.x * 64 + threadIdx.x;
  if (p >= B) return;
  int best = 0;
  for (int i = 0; i + 8 <= L; i += 8) {
    int letter[8], left[8], e[8], corner = 0;
#pragma unroll
    for (int r = 0; r < 8; r++) letter[r] = i + r < L ? a[(size_t)p * L + i + r] : 255, left[r] = 0, e[r] = -open;
    for (int j = 0; j < M; j++) {
      size_t at = (size_t)j * B + p;
      int other = b[(size_t)p * M + j], up = i ? h[at] : 0, down = i ? f[at] : -open, diagonal = corner;
      corner = up;
#pragma unroll
      for (int r = 0; r < 8; r++) {
        down = add_max(down, -extend, up - open);
        e[r] = add_max(e[r], -extend, left[r] - open);
        up = max3_relu(diagonal + (letter[r] == other ? match : -mismatch), e[r], down);
        diagonal = left[r];
        left[r] = up;
        best = i + r < L ? max(best, up) : best;
      }
      h[at] = up;
      f[at] = down;
    }
  }
  out[p] = best;
}
