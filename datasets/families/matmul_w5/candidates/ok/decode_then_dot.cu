// Two launches: codes as bytes, one a thread; then a dot product of 32-bit loads of four codes.
// plan: temp t int8[N, 32 * G]
// plan: launch k1<<<cdiv(N * G * 32, 256), 256>>>(w, t, N * G * 32)
// plan: launch k2<<<dim3(cdiv(N, 64), M), 64>>>(x, t, s, out, N, G)
extern "C" __global__ void k1(const unsigned* w, signed char* t, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  int g = i / 32, bit = i % 32 * 5;
  unsigned low = w[5 * g + bit / 32] >> bit % 32;
  if (bit % 32 > 27) low |= w[5 * g + bit / 32 + 1] << (32 - bit % 32);
  t[i] = (signed char)((int)(low & 31) - 16);
}
extern "C" __global__ void k2(const float* x, const char4* t, const float* s, float* out, int N, int G) {
  int n = blockIdx.x * 64 + threadIdx.x, m = blockIdx.y;
  if (n >= N) return;
  float a = 0.f;
  for (int g = 0; g < G; g++) {
    const float* v = x + ((size_t)m * G + g) * 32;
    float p = 0.f;
    for (int c = 0; c < 8; c++) {
      char4 q = t[((size_t)n * G + g) * 8 + c];
      p += v[4 * c] * (float)q.x + v[4 * c + 1] * (float)q.y + v[4 * c + 2] * (float)q.z + v[4 * c + 3] * (float)q.w;
    }
    a += p * s[(size_t)n * G + g];
  }
  out[(size_t)m * N + n] = a;
}
