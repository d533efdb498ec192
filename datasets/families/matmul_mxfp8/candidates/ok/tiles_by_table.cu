// Tiles of 32 by 32 with their scales worked in; each number is looked up in a table of 256 in shared memory
// once for the 32 results that it goes into. A thread has four rows.
// plan: launch k<<<dim3(cdiv(N, 32), cdiv(M, 32)), dim3(32, 8)>>>(a, sa, b, sb, alpha, out, M, N, G)
// Three bits of fraction, four of exponent with a bias of 7; no infinities, and NaN has all bits.
__device__ float value(unsigned q) {
  unsigned m = q & 0x7f;
  float v = m == 0x7f ? NAN : m < 8 ? (float)m / 512 : __uint_as_float((m << 20) + (120u << 23));
  return q & 0x80 ? -v : v;
}
__device__ float scale(unsigned s) { return s ? __uint_as_float(s << 23) : __uint_as_float(1u << 22); }
extern "C" __global__ void k(const unsigned char* a, const unsigned char* sa, const unsigned char* b,
                             const unsigned char* sb, const float* alpha, float* out, int M, int N, int G) {
  __shared__ float table[256], p[32][33], q[32][33];
  int c = threadIdx.x, r = threadIdx.y, n = blockIdx.x * 32 + c, m = blockIdx.y * 32;
  table[r * 32 + c] = value(r * 32 + c);
  float sum[4] = {0.f, 0.f, 0.f, 0.f};
  for (int g = 0; g < G; g++) {
    __syncthreads();
    for (int u = r; u < 32; u += 8) {
      size_t i = (size_t)(m + u) * G + g, j = (size_t)(blockIdx.x * 32 + u) * G + g;
      p[u][c] = m + u < M ? table[a[32 * i + c]] * scale(sa[i]) : 0.f;
      q[u][c] = blockIdx.x * 32 + u < N ? table[b[32 * j + c]] * scale(sb[j]) : 0.f;
    }
    __syncthreads();
    for (int u = 0; u < 4; u++) {
      float part = 0.f;
      for (int e = 0; e < 32; e++) part += p[r + 8 * u][e] * q[c][e];
      sum[u] += part;
    }
  }
  for (int u = 0; u < 4; u++)
    if (m + r + 8 * u < M && n < N) out[(size_t)(m + r + 8 * u) * N + n] = sum[u] * *alpha;
}
