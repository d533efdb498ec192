// A warp has one row of weights and decodes each group once for eight rows of x: its lanes take groups in
// turn, three loads of 32 bits a group.
// plan: launch k<<<dim3(N, cdiv(M, 8)), 32>>>(x, w, s, out, M, N, G)
extern "C" __global__ void k(const float* x, const unsigned* w, const float* s, float* out, int M, int N, int G) {
  int n = blockIdx.x, first = blockIdx.y * 8, rows = min(8, M - first), lane = threadIdx.x;
  float a[8] = {0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f};
  for (int g = lane; g < G; g += 32) {
    size_t at = (size_t)n * G + g;
    unsigned w0 = w[3 * at], w1 = w[3 * at + 1], w2 = w[3 * at + 2];
    unsigned words[4] = {w0 & 0xffffff, __funnelshift_r(w0, w1, 24) & 0xffffff, __funnelshift_r(w1, w2, 16) & 0xffffff, w2 >> 8};
    float t = s[at];
    for (int m = 0; m < rows; m++) {
      const float* v = x + ((size_t)(first + m) * G + g) * 32;
      float p = 0.f;
#pragma unroll
      for (int o = 0; o < 4; o++)
#pragma unroll
        for (int c = 0; c < 8; c++) p += v[8 * o + c] * (float)((int)(words[o] >> 3 * c & 7) - 4);
      a[m] += p * t;
    }
  }
  for (int m = 0; m < rows; m++) {
    float sum = a[m];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffff, sum, d);
    if (lane == 0) out[(size_t)(first + m) * N + n] = sum;
  }
}
