// Lanes of a warp with the same value add once for all of them.
// plan: copy out <- c
// plan: launch k<<<cdiv(N, 128), 128>>>(x, out, N)
extern "C" __global__ void k(const int* x, int* out, int N) {
  int i = blockIdx.x * 128 + threadIdx.x, v = i < N ? x[i] : -1;
  unsigned same = __match_any_sync(0xffffffff, v);
  if (v >= 0 && (threadIdx.x & 31) == __ffs(same) - 1) atomicAdd(out + v, __popc(same));
}
