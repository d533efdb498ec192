// plan: temp t float32[M, H]
// plan: launch mm<<<dim3(cdiv(H, 32), M), 32>>>(x, w1, t, H, K)
// plan: launch add<<<dim3(cdiv(H, 64), M), 64>>>(t, b, H)
// plan: launch relu<<<cdiv(M * H, 256), 256>>>(t, M * H)
// plan: launch mm<<<dim3(cdiv(N, 32), M), 32>>>(t, w2, out, N, H)
extern "C" __global__ void mm(const float* x, const float* w, float* out, int N, int K) {
  int c = blockIdx.x * 32 + threadIdx.x;
  if (c >= N) return;
  float a = 0.f;
  for (int q = 0; q < K; q++) a += x[blockIdx.y * K + q] * w[q * N + c];
  out[blockIdx.y * N + c] = a;
}
extern "C" __global__ void add(float* t, const float* b, int H) {
  int h = blockIdx.x * 64 + threadIdx.x;
  if (h < H) t[blockIdx.y * H + h] += b[h];
}
extern "C" __global__ void relu(float* t, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) t[i] = fmaxf(t[i], 0.f);
}
