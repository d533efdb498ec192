// A thread keeps the five words of a group in registers and takes each code by one funnel shift whose place
// the compiler knows, for up to four rows of x; eight threads share the groups of a row of weights.
// plan: launch k<<<dim3(cdiv(N, 16), cdiv(M, 4)), dim3(8, 16)>>>(x, w, s, out, M, N, G)
extern "C" __global__ void k(const float* x, const unsigned* w, const float* s, float* out, int M, int N, int G) {
  __shared__ float part[16][4][8];
  int n = blockIdx.x * 16 + threadIdx.y, first = blockIdx.y * 4, rows = min(4, M - first);
  float a[4] = {0.f, 0.f, 0.f, 0.f};
  for (int g = threadIdx.x; g < G / 8 * 8 && n < N; g += 8) {
    size_t at = (size_t)n * G + g;
    unsigned r[6];
    for (int j = 0; j < 5; j++) r[j] = w[5 * at + j];
    r[5] = 0;
    float q[32];
#pragma unroll
    for (int c = 0; c < 32; c++)
      q[c] = (float)((int)(__funnelshift_r(r[5 * c / 32], r[5 * c / 32 + 1], 5 * c % 32) & 31) - 16);
    for (int m = 0; m < rows; m++) {
      const float* v = x + ((size_t)(first + m) * G + g) * 32;
      float p = 0.f;
#pragma unroll
      for (int c = 0; c < 32; c++) p += v[c] * q[c];
      a[m] += p * s[at];
    }
  }
  for (int m = 0; m < 4; m++) part[threadIdx.y][m][threadIdx.x] = a[m];
  __syncthreads();
  if (threadIdx.x < rows && n < N) {
    float sum = 0.f;
    for (int j = 0; j < 8; j++) sum += part[threadIdx.y][threadIdx.x][j];
    out[(size_t)(first + threadIdx.x) * N + n] = sum;
  }
}
