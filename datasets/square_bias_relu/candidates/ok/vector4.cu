// plan: if N % 4 == 0
// plan: launch k4<<<cdiv(M * N, 1024), 256>>>(x, b, out, M, N)
// plan: else
// plan: launch k<<<cdiv(M * N, 256), 256>>>(x, b, out, M, N)
// plan: end
extern "C" __global__ void k4(const float* x, const float* b, float* out, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i * 4 >= M * N) return;
  float4 x4 = ((const float4*)x)[i];
  float4 b4 = ((const float4*)b)[i % (N / 4)];
  float4 o;
  o.x = fmaxf(x4.x * x4.x + b4.x, 0.f);
  o.y = fmaxf(x4.y * x4.y + b4.y, 0.f);
  o.z = fmaxf(x4.z * x4.z + b4.z, 0.f);
  o.w = fmaxf(x4.w * x4.w + b4.w, 0.f);
  ((float4*)out)[i] = o;
}
extern "C" __global__ void k(const float* x, const float* b, float* out, int M, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < M * N) out[i] = fmaxf(x[i] * x[i] + b[i % N], 0.f);
}
