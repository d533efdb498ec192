// plan: temp t float32[M, N]
// plan: launch k1<<<cdiv(M * N, 256), 256>>>(x, t, M, N)
// plan: launch k2<<<cdiv(M * N, 256), 256>>>(t, g, M, N)
// plan: launch k3<<<cdiv(M * N, 256), 256>>>(t, r, out, M, N)
extern "C" __global__ void k1(const float* x, float* t, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * N) t[i] = 1.f / (1.f + expf(-x[i]));
}
extern "C" __global__ void k2(float* t, const float* g, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * N) t[i] = t[i] * g[i];
}
extern "C" __global__ void k3(const float* t, const float* r, float* out, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * N) out[i] = t[i] + r[i];
}
