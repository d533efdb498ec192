// plan: let P = clog2(N)
// plan: temp t float32[N]
// plan: copy t <- x
// plan: for s in 0..P
// plan: launch k<<<cdiv(N, 256), 256>>>(t, P - 1 - s, N)
// plan: end
// plan: launch k1<<<1, 1>>>(t, out)
extern "C" __global__ void k(float* t, int s, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  int h = 1 << s;
  if (i < h && i + h < N) t[i] += t[i + h];
}
extern "C" __global__ void k1(const float* t, float* out) {
  out[0] = t[0];
}
