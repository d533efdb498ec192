// plan: let T = cdiv(N, 2048)
// plan: temp t float32[T]
// plan: temp done int32[1]
// plan: fill done 0
// plan: launch k<<<T, 128>>>(x, t, done, out, N, T)
extern "C" __global__ void k(const float* x, float* t, int* done, float* out, int N, int T) {
  __shared__ float p[128];
  int j = threadIdx.x;
  float a = 0.f;
  for (int c = j; c < 2048; c += 128)
    if (blockIdx.x * 2048 + c < N) a += x[blockIdx.x * 2048 + c];
  p[j] = a;
  __syncthreads();
  for (int h = 64; h > 0; h /= 2) {
    if (j < h) p[j] += p[j + h];
    __syncthreads();
  }
  if (j > 0) return;
  t[blockIdx.x] = p[0];
  __threadfence();
  if (atomicAdd(done, 1) < T - 1) return;
  __threadfence();
  a = 0.f;
  for (int u = 0; u < T; u++) a += ((volatile float*)t)[u];
  out[0] = a;
}
