// plan: launch k<<<M, 128>>>(x, out, N)
extern "C" __global__ void k(const float* x, long long* out, int N) {
  __shared__ float p[128];
  __shared__ int e[128];
  int j = threadIdx.x;
  float a = -INFINITY;
  int b = j;
  for (int c = j; c < N; c += 128) {
    float v = x[blockIdx.x * N + c];
    if (v > a) {
      a = v;
      b = c;
    }
  }
  p[j] = a;
  e[j] = b;
  __syncthreads();
  for (int h = 64; h > 0; h /= 2) {
    if (j < h && (p[j + h] > p[j] || (p[j + h] == p[j] && e[j + h] < e[j]))) {
      p[j] = p[j + h];
      e[j] = e[j + h];
    }
    __syncthreads();
  }
  if (j == 0) out[blockIdx.x] = e[0];
}
