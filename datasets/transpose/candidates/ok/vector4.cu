// plan: if N % 4 == 0 && M % 4 == 0
// plan: launch k4<<<dim3(cdiv(N, 64), cdiv(M, 64)), dim3(16, 16)>>>(x, out, M, N)
// plan: else
// plan: launch k<<<dim3(cdiv(N, 32), cdiv(M, 8)), dim3(32, 8)>>>(x, out, M, N)
// plan: end
extern "C" __global__ void k4(const float* x, float* out, int M, int N) {
  int c = (blockIdx.x * 16 + threadIdx.x) * 4;
  int m = (blockIdx.y * 16 + threadIdx.y) * 4;
  if (m >= M || c >= N) return;
  float4 a = *(const float4*)(x + m * N + c);
  float4 b = *(const float4*)(x + (m + 1) * N + c);
  float4 d = *(const float4*)(x + (m + 2) * N + c);
  float4 e = *(const float4*)(x + (m + 3) * N + c);
  *(float4*)(out + c * M + m) = make_float4(a.x, b.x, d.x, e.x);
  *(float4*)(out + (c + 1) * M + m) = make_float4(a.y, b.y, d.y, e.y);
  *(float4*)(out + (c + 2) * M + m) = make_float4(a.z, b.z, d.z, e.z);
  *(float4*)(out + (c + 3) * M + m) = make_float4(a.w, b.w, d.w, e.w);
}
extern "C" __global__ void k(const float* x, float* out, int M, int N) {
  int c = blockIdx.x * 32 + threadIdx.x;
  int m = blockIdx.y * 8 + threadIdx.y;
  if (m < M && c < N) out[c * M + m] = x[m * N + c];
}
