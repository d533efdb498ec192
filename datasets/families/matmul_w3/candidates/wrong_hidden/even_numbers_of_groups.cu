// plan: launch k<<<cdiv(M * N, 128), 128>>>(x, w, s, out, M, N, G)
extern "C" __global__ void k(const float* x, const unsigned char* w, const float* s, float* out, int M, int N, int G) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= M * N) return;
  int m = i / N, n = i % N;
  float a = 0.f;
  for (int g = 0; g < G / 2 * 2; g++) {
    float p = 0.f;
    for (int o = 0; o < 4; o++) {
      const unsigned char* b = w + ((size_t)n * G + g) * 12 + 3 * o;
      const float* v = x + ((size_t)m * G + g) * 32 + 8 * o;
      int word = b[0] | b[1] << 8 | b[2] << 16;
      for (int c = 0; c < 8; c++) p += v[c] * (float)((word >> 3 * c & 7) - 4);
    }
    a += p * s[(size_t)n * G + g];
  }
  out[i] = a;
}
