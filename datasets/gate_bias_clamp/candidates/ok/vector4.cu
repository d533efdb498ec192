// plan: if N % 4 == 0
// plan: launch k4<<<cdiv(M * N, 1024), 256>>>(x, w, b, out, M, N)
// plan: else
// plan: launch k<<<cdiv(M * N, 256), 256>>>(x, w, b, out, M, N)
// plan: end
extern "C" __global__ void k4(const float* x, const float* w, const float* b, float* out, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i * 4 >= M * N) return;
  float4 x4 = ((const float4*)x)[i];
  float4 w4 = ((const float4*)w)[i % (N / 4)];
  float4 b4 = ((const float4*)b)[i % (N / 4)];
  float4 o;
  o.x = fminf(fmaxf(x4.x * w4.x + b4.x, -1.f), 1.f);
  o.y = fminf(fmaxf(x4.y * w4.y + b4.y, -1.f), 1.f);
  o.z = fminf(fmaxf(x4.z * w4.z + b4.z, -1.f), 1.f);
  o.w = fminf(fmaxf(x4.w * w4.w + b4.w, -1.f), 1.f);
  ((float4*)out)[i] = o;
}
extern "C" __global__ void k(const float* x, const float* w, const float* b, float* out, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * N) out[i] = fminf(fmaxf(x[i] * w[i % N] + b[i % N], -1.f), 1.f);
}
