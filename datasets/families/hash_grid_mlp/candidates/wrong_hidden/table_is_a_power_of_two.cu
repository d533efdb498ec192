// The hash is cut by a mask.
// plan: launch k<<<cdiv(N, 32), 256, 4 * 33 * (2 * L + H)>>>(p, table, r, w1, w2, out, N, L, T, H, O)
__device__ float2 lookup(const float* p, const float2* table, float r, int T) {
  float x = p[0] * r, y = p[1] * r, z = p[2] * r;
  float fx = floorf(x), fy = floorf(y), fz = floorf(z);
  unsigned i = (unsigned)fx, j = (unsigned)fy, m = (unsigned)fz;
  x -= fx, y -= fy, z -= fz;
  float2 sum = make_float2(0.f, 0.f);
#pragma unroll
  for (int c = 0; c < 8; c++) {
    unsigned a = i + (c & 1), b = j + (c >> 1 & 1), d = m + (c >> 2);
    float2 v = table[(a ^ b * 2654435761u ^ d * 805459861u) & (unsigned)(T - 1)];
    float w = (c & 1 ? x : 1.f - x) * (c & 2 ? y : 1.f - y) * (c & 4 ? z : 1.f - z);
    sum.x += w * v.x;
    sum.y += w * v.y;
  }
  return sum;
}
extern "C" __global__ void k(const float* p, const float2* table, const int* r, const float* w1, const float* w2,
                             float* out, int N, int L, int T, int H, int O) {
  extern __shared__ float s[];
  float* h = s + 33 * 2 * L;
  int lane = threadIdx.x % 32, group = threadIdx.x / 32, n = blockIdx.x * 32 + lane;
  for (int l = group; l < L; l += 8) {
    float2 f = n < N ? lookup(p + 3 * n, table + (size_t)l * T, (float)r[l], T) : make_float2(0.f, 0.f);
    s[33 * 2 * l + lane] = f.x;
    s[33 * (2 * l + 1) + lane] = f.y;
  }
  __syncthreads();
  for (int u = group; u < H; u += 8) {
    float a = 0.f;
    for (int c = 0; c < 2 * L; c++) a += w1[u * 2 * L + c] * s[33 * c + lane];
    h[33 * u + lane] = fmaxf(a, 0.f);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 32 * O; i += 256) {
    int m = i / O, o = i % O;
    if (blockIdx.x * 32 + m >= N) break;
    float a = 0.f;
    for (int u = 0; u < H; u++) a += w2[o * H + u] * h[33 * u + m];
    out[((size_t)blockIdx.x * 32 + m) * O + o] = a;
  }
}
