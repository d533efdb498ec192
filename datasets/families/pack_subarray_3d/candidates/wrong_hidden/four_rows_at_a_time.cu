// Four rows a block, and none for what is left.
// plan: if X % 16 == 0 && R % 16 == 0 && P % 16 == 0 && aligned(x, 16)
// plan: launch k<uint4><<<max(1, Z * Y / 4), dim3(32, 4)>>>(x, out, Z * Y, Y, X / 16, R / 16, P / 16)
// plan: else
// plan: if X % 4 == 0 && R % 4 == 0 && P % 4 == 0 && aligned(x, 4)
// plan: launch k<unsigned><<<max(1, Z * Y / 4), dim3(32, 4)>>>(x, out, Z * Y, Y, X / 4, R / 4, P / 4)
// plan: else
// plan: launch k<unsigned char><<<max(1, Z * Y / 4), dim3(32, 4)>>>(x, out, Z * Y, Y, X, R, P)
// plan: end
// plan: end
template <typename T>
__global__ void k(const T* x, T* out, int rows, int Y, int X, int R, int P) {
  int row = blockIdx.x * 4 + threadIdx.y;
  if (row >= rows) return;
  const T* from = x + (size_t)(row / Y) * P + (size_t)(row % Y) * R;
  for (int c = threadIdx.x; c < X; c += 32) out[(size_t)row * X + c] = from[c];
}
