// Twice the numbers of FP4 are integers of -12 to 12: the groups are summed exactly by dot products of four
// bytes, and scaled after. First all codes become bytes; then a thread has four rows of one column.
// plan: temp p int8[M, 16 * G]
// plan: temp q int8[N, 16 * G]
// plan: launch bytes<<<cdiv(M * 2 * G, 128), 128>>>(a, p, M * 2 * G)
// plan: launch bytes<<<cdiv(N * 2 * G, 128), 128>>>(b, q, N * 2 * G)
// plan: launch k<<<dim3(cdiv(N, 64), cdiv(M, 4)), 64>>>(p, sa, q, sb, alpha, out, M, N, G)
__device__ float scale(unsigned q) {
  unsigned m = q & 0x7f;
  float v = m == 0x7f ? NAN : m < 8 ? (float)m / 512 : __uint_as_float((m << 20) + (120u << 23));
  return q & 0x80 ? -v : v;
}
extern "C" __global__ void bytes(const unsigned* q, int2* out, int n) {  // eight codes a thread
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= n) return;
  unsigned word[2] = {0, 0};
#pragma unroll
  for (int u = 0; u < 8; u++) {
    unsigned code = q[i] >> 4 * u & 15, m = code & 7;
    int v = m < 4 ? m : (2 + m % 2) << (m / 2 - 1);
    word[u / 4] |= ((code & 8 ? -v : v) & 255u) << 8 * (u % 4);
  }
  out[i] = make_int2((int)word[0], (int)word[1]);
}
extern "C" __global__ void k(const int* p, const unsigned char* sa, const int* q, const unsigned char* sb,
                             const float* alpha, float* out, int M, int N, int G) {
  int n = blockIdx.x * 64 + threadIdx.x, first = blockIdx.y * 4, rows = min(4, M - first);
  if (n >= N) return;
  float sum[4] = {0.f, 0.f, 0.f, 0.f};
  for (int g = 0; g < G; g++) {
    size_t j = (size_t)n * G + g;
    float s = scale(sb[j]) * 0.25f;
    for (int r = 0; r < rows; r++) {
      size_t i = (size_t)(first + r) * G + g;
      int d = 0;
#pragma unroll
      for (int c = 0; c < 4; c++) d = __dp4a(p[4 * i + c], q[4 * j + c], d);
      sum[r] += (float)d * (s * scale(sa[i]));
    }
  }
  for (int r = 0; r < rows; r++) out[(size_t)(first + r) * N + n] = sum[r] * *alpha;
}
