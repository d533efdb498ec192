// plan: temp t float32[M, N]
// plan: launch k1<<<cdiv(M * N, 256), 256>>>(x, b, t, M, N)
// plan: launch k2<<<cdiv(M * N, 256), 256>>>(t, r, M, N)
// plan: launch k3<<<cdiv(M * N, 256), 256>>>(t, out, M, N)
extern "C" __global__ void k1(const float* x, const float* b, float* t, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * N) t[i] = x[i] + b[i % N];
}
extern "C" __global__ void k2(float* t, const float* r, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * N) t[i] = t[i] + r[i];
}
extern "C" __global__ void k3(const float* t, float* out, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * N) out[i] = fmaxf(t[i], 0.f);
}
