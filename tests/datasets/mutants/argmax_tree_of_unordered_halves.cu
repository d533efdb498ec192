// mutant: a tree over threads that keeps no order among equal maxima
// task: row_argmax
// found by: x: integers(0, 3)
// plan: launch k<<<M, 128>>>(x, out, N)
extern "C" __global__ void k(const float* x, long long* out, int N) {
  __shared__ float v[128];
  __shared__ int w[128];
  const float* p = x + blockIdx.x * N;
  int t = threadIdx.x, b = t < N ? t : 0;
  for (int c = t; c < N; c += 128)
    if (p[c] > p[b]) b = c;
  v[t] = p[b];
  w[t] = b;
  __syncthreads();
  for (int h = 64; h > 0; h /= 2) {
    if (t < h && v[t + h] > v[t]) v[t] = v[t + h], w[t] = w[t + h];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = w[0];
}
