// plan: temp a float32[M, N]
// plan: temp b float32[M, N]
// plan: copy a <- x
// plan: for s in 0..clog2(N)
// plan: if s % 2 == 0
// plan: launch k<<<dim3(cdiv(N, 256), M), 256>>>(a, b, s, N)
// plan: else
// plan: launch k<<<dim3(cdiv(N, 256), M), 256>>>(b, a, s, N)
// plan: end
// plan: end
// plan: if clog2(N) % 2 == 0
// plan: copy out <- a
// plan: else
// plan: copy out <- b
// plan: end
extern "C" __global__ void k(const float* a, float* b, int s, int N) {
  int c = blockIdx.x * 256 + threadIdx.x;
  int i = blockIdx.y * N + c;
  int h = 1 << s;
  if (c < N) b[i] = c >= h ? a[i] + a[i - h] : a[i];
}
