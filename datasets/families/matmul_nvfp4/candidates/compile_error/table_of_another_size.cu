// plan: launch k<<<cdiv(M * N, 128), 128>>>(a, out, M * N)
__constant__ float table[8] = {0.f, 0.5f, 1.f, 1.5f, 2.f, 3.f, 4.f, 6.f, 0.f};
extern "C" __global__ void k(const unsigned char* a, float* out, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) out[i] = table[a[i] & 7];
}
