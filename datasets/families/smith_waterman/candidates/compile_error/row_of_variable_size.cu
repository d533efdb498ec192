// plan: launch k<<<cdiv(B, 64), 64>>>(a, b, out, B, M)
extern "C" __global__ void k(const unsigned char* a, const unsigned char* b, int* out, int B, int M) {
  __shared__ int h[M];
  int p = blockIdx.x * 64 + threadIdx.x;
  if (p < B) out[p] = h[0] + a[0] + b[0];
}
