// plan: launch k<<<cdiv(M * N, 128), 128>>>(x, out, M * N)
extern "C" __global__ void k(const half_t* x, half_t* out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) out[i] = x[0];
}
