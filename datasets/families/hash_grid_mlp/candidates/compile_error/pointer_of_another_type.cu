// plan: launch k<<<cdiv(N, 128), 128>>>(p, table, out, N)
extern "C" __global__ void k(const float* p, const float* table, float* out, int N) {
  int n = blockIdx.x * 128 + threadIdx.x;
  float2 v = table[0];
  if (n < N) out[n] = p[n] * v.x;
}
