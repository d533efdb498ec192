// plan: temp t float32[M, N]
// plan: launch k1<<<cdiv(M * N, 256), 256>>>(x, w, t, M, N)
// plan: launch k2<<<cdiv(M * N, 256), 256>>>(t, b, M, N)
// plan: launch k3<<<cdiv(M * N, 256), 256>>>(t, out, M, N)
extern "C" __global__ void k1(const float* x, const float* w, float* t, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * N) t[i] = x[i] * w[i % N];
}
extern "C" __global__ void k2(float* t, const float* b, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * N) t[i] = t[i] + b[i % N];
}
extern "C" __global__ void k3(const float* t, float* out, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * N) out[i] = fminf(fmaxf(t[i], -1.f), 1.f);
}
