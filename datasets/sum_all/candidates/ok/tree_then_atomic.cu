// plan: fill out 0
// plan: launch k<<<cdiv(N, 4096), 256>>>(x, out, N)
extern "C" __global__ void k(const float* x, float* out, int N) {
  __shared__ float p[256];
  int j = threadIdx.x;
  float a = 0.f;
  for (int u = 0; u < 16; u++) {
    int i = blockIdx.x * 4096 + u * 256 + j;
    if (i < N) a += x[i];
  }
  p[j] = a;
  __syncthreads();
  for (int h = 128; h > 0; h /= 2) {
    if (j < h) p[j] += p[j + h];
    __syncthreads();
  }
  if (j == 0) atomicAdd(out, p[0]);
}
