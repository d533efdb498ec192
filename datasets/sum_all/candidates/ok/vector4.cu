// plan: fill out 0
// plan: launch k<<<cdiv(N, 8192), 128>>>(x, out, N)
extern "C" __global__ void k(const float* x, float* out, int N) {
  int b = (blockIdx.x * 128 + threadIdx.x) * 64;
  float4 a = make_float4(0.f, 0.f, 0.f, 0.f);
  for (int c = b; c < b + 64; c += 4) {
    if (c + 4 <= N) {
      float4 v = *(const float4*)(x + c);
      a.x += v.x;
      a.y += v.y;
      a.z += v.z;
      a.w += v.w;
    } else {
      for (int u = c; u < N; u++) a.x += x[u];
      break;
    }
  }
  float sum = a.x + a.y + (a.z + a.w);
  for (int h = 16; h > 0; h /= 2) sum += __shfl_down_sync(0xffffffff, sum, h);
  if (threadIdx.x % 32 == 0 && b < N) atomicAdd(out, sum);
}
