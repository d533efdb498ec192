// plan: launch k<<<M, 32>>>(x, out, N)
extern "C" __global__ void k(const float* x, long long* out, int N) {
  float a = -INFINITY;
  int e = threadIdx.x;
  for (int c = threadIdx.x; c < N; c += 32)
    if (x[blockIdx.x * N + c] > a) a = x[blockIdx.x * N + c], e = c;
  for (int h = 16; h > 0; h /= 2) {
    float b = __shfl_xor_sync(0xffffffff, a, h);
    int f = __shfl_xor_sync(0xffffffff, e, h);
    if (b > a || (b == a && f < e)) a = b, e = f;
  }
  if (threadIdx.x == 0) out[blockIdx.x] = e;
}
