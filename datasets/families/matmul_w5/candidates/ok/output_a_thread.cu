// plan: launch k<<<cdiv(M * N, 128), 128>>>(x, w, s, out, M, N, G)
extern "C" __global__ void k(const float* x, const unsigned* w, const float* s, float* out, int M, int N, int G) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= M * N) return;
  int m = i / N, n = i % N;
  float a = 0.f;
  for (int g = 0; g < G; g++) {
    const unsigned* b = w + ((size_t)n * G + g) * 5;
    const float* v = x + ((size_t)m * G + g) * 32;
    float p = 0.f;
    for (int c = 0; c < 32; c++) {
      int word = 5 * c / 32, bit = 5 * c % 32;
      unsigned long long two = b[word] | (unsigned long long)b[min(word + 1, 4)] << 32;
      p += v[c] * (float)((int)(two >> bit & 31) - 16);
    }
    a += p * s[(size_t)n * G + g];
  }
  out[i] = a;
}
