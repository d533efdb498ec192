// plan: fill out 0
// plan: launch k<<<max(N / 1024, 1), 32>>>(x, out, N)
extern "C" __global__ void k(const float* x, float* out, int N) {
  int b = blockIdx.x * 1024;
  float a = 0.f;
  for (int c = b + threadIdx.x; c < min(b + 1024, N); c += 32) a += x[c];
  for (int h = 16; h > 0; h /= 2) a += __shfl_xor_sync(0xffffffff, a, h);
  if (threadIdx.x == 0) atomicAdd(out, a);
}
