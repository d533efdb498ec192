// The largest word that divides block, stride and address.
// plan: if B % 16 == 0 && x.s0 % 16 == 0 && aligned(x, 16)
// plan: launch k<uint4><<<dim3(cdiv(B, 512), min(C, 65535)), 32>>>(x, out, C, B / 16, x.s0 / 16)
// plan: else
// plan: if B % 4 == 0 && x.s0 % 4 == 0 && aligned(x, 4)
// plan: launch k<unsigned><<<dim3(cdiv(B, 128), min(C, 65535)), 32>>>(x, out, C, B / 4, x.s0 / 4)
// plan: else
// plan: launch k<unsigned char><<<dim3(cdiv(B, 32), min(C, 65535)), 32>>>(x, out, C, B, x.s0)
// plan: end
// plan: end
template <typename T>
__global__ void k(const T* x, T* out, int C, int B, int S) {
  int b = blockIdx.x * 32 + threadIdx.x;
  if (b >= B) return;
  for (int c = blockIdx.y; c < C; c += gridDim.y) out[(size_t)c * B + b] = x[(size_t)c * S + b];
}
