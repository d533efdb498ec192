// The CPU's form of warp_a_column: what the lanes of a warp share there, one thread does here, so that no
// thread waits and a group of 32 is one vector loop. A row of weights is still decoded once for eight rows of
// x.
// plan: launch k<<<dim3(cdiv(N, 16), cdiv(M, 8)), 16>>>(x, w, s, out, M, N, G)
extern "C" __global__ void k(const float* x, const unsigned char* w, const float* s, float* out, int M, int N, int G) {
  int n = blockIdx.x * 16 + threadIdx.x, first = blockIdx.y * 8, rows = min(8, M - first);
  if (n >= N) return;
  float a[8] = {0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f};
  for (int g = 0; g < G; g++) {
    float q[32];
    for (int o = 0; o < 4; o++) {
      const unsigned char* b = w + ((size_t)n * G + g) * 12 + 3 * o;
      int word = b[0] | b[1] << 8 | b[2] << 16;
      for (int c = 0; c < 8; c++) q[8 * o + c] = (float)((word >> 3 * c & 7) - 4);
    }
    for (int m = 0; m < rows; m++) {
      const float* v = x + ((size_t)(first + m) * G + g) * 32;
      float p[8] = {0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f};
      for (int o = 0; o < 32; o += 8)
        for (int c = 0; c < 8; c++) p[c] += v[o + c] * q[o + c];
      a[m] += (((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]))) * s[(size_t)n * G + g];
    }
  }
  for (int m = 0; m < rows; m++) out[(size_t)(first + m) * N + n] = a[m];
}
