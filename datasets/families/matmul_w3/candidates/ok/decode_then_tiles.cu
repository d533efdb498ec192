// Two launches: the weights as float32 in memory, then a product in tiles of shared memory.
// plan: temp t float32[N, 32 * G]
// plan: launch k1<<<cdiv(N * G * 4, 128), 128>>>(w, s, t, N * G * 4)
// plan: launch k2<<<dim3(cdiv(N, 16), cdiv(M, 16)), dim3(16, 16)>>>(x, t, out, M, N, 32 * G)
extern "C" __global__ void k1(const unsigned char* w, const float* s, float* t, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= n) return;
  int word = w[3 * i] | w[3 * i + 1] << 8 | w[3 * i + 2] << 16;
  float v = s[i / 4];
  for (int c = 0; c < 8; c++) t[8 * i + c] = v * (float)((word >> 3 * c & 7) - 4);
}
extern "C" __global__ void k2(const float* x, const float* t, float* out, int M, int N, int K) {
  __shared__ float p[16][17], q[16][17];
  int n = blockIdx.x * 16 + threadIdx.x, m = blockIdx.y * 16 + threadIdx.y, r = blockIdx.x * 16 + threadIdx.y;
  float a = 0.f;
  for (int c = 0; c < K; c += 16) {
    p[threadIdx.y][threadIdx.x] = m < M ? x[(size_t)m * K + c + threadIdx.x] : 0.f;
    q[threadIdx.y][threadIdx.x] = r < N ? t[(size_t)r * K + c + threadIdx.x] : 0.f;
    __syncthreads();
    float b = 0.f;
    for (int u = 0; u < 16; u++) b += p[threadIdx.y][u] * q[threadIdx.x][u];
    a += b;
    __syncthreads();
  }
  if (m < M && n < N) out[(size_t)m * N + n] = a;
}
