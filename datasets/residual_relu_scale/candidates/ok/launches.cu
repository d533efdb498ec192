// plan: temp t float32[M, N]
// plan: launch k1<<<cdiv(M * N, 256), 256>>>(x, r, t, M, N)
// plan: launch k2<<<cdiv(M * N, 256), 256>>>(t, M, N)
// plan: launch k3<<<cdiv(M * N, 256), 256>>>(t, out, s, M, N)
extern "C" __global__ void k1(const float* x, const float* r, float* t, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * N) t[i] = x[i] + r[i];
}
extern "C" __global__ void k2(float* t, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * N) t[i] = fmaxf(t[i], 0.f);
}
extern "C" __global__ void k3(const float* t, float* out, float s, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * N) out[i] = t[i] * s;
}
