// Blackwell's product of FP4 numbers with scales, where the compiler's target has it (sm_120a); a warp has 16
// rows by 8 columns and takes 64 numbers of K at a time. Elsewhere, and for what is left of K, numbers are
// decoded one by one. Compiled for sm_120a; never run there.
// plan: launch k<<<dim3(cdiv(N, 8), cdiv(M, 16)), 32>>>(a, sa, b, sb, alpha, out, M, N, G)
__device__ float value(unsigned q) {  // of the low four bits
  unsigned m = q & 7;
  float v = m < 2 ? 0.5f * m : __uint_as_float((m << 22) + (126u << 23));
  return q & 8 ? -v : v;
}
__device__ float scale(unsigned q) {
  unsigned m = q & 0x7f;
  float v = m == 0x7f ? NAN : m < 8 ? (float)m / 512 : __uint_as_float((m << 20) + (120u << 23));
  return q & 0x80 ? -v : v;
}
extern "C" __global__ void k(const unsigned char* a, const unsigned char* sa, const unsigned char* b,
                             const unsigned char* sb, const float* alpha, float* out, int M, int N, int G) {
  int row = blockIdx.y * 16 + threadIdx.x / 4, t = threadIdx.x % 4, column = blockIdx.x * 8 + threadIdx.x / 4, g = 0;
  float d[4] = {0.f, 0.f, 0.f, 0.f};
#ifdef __CUDA_ARCH_FEAT_SM120_ALL
  const unsigned *p = (const unsigned*)a, *q = (const unsigned*)b;
  for (; g + 4 <= G && G % 4 == 0; g += 4) {
    size_t i = (size_t)row * 2 * G + 2 * g + t, j = (size_t)column * 2 * G + 2 * g + t;
    unsigned r[4] = {0, 0, 0, 0}, c[2] = {0, 0}, u = 0, v = 0;
    if (row < M) r[0] = p[i], r[2] = p[i + 4];
    if (row + 8 < M) r[1] = p[i + (size_t)16 * G], r[3] = p[i + (size_t)16 * G + 4];
    if (column < N) c[0] = q[j], c[1] = q[j + 4], v = *(const unsigned*)(sb + (size_t)column * G + g);
    int of = row + t % 2 * 8;
    if (of < M) u = *(const unsigned*)(sa + (size_t)of * G + g);
    asm("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, {%10}, {0, 0}, {%11}, {0, 0};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(c[0]), "r"(c[1]), "r"(u), "r"(v));
  }
#endif
  for (int u = 0; u < 4; u++) {
    int m = row + u / 2 * 8, n = blockIdx.x * 8 + 2 * t + u % 2;
    if (m >= M || n >= N) continue;
    for (int h = g; h < G; h++) {
      size_t i = (size_t)m * G + h, j = (size_t)n * G + h;
      float e = 0.f;
      for (int c = 0; c < 8; c++) {
        unsigned x = a[8 * i + c], y = b[8 * j + c];
        e += value(x) * value(y) + value(x >> 4) * value(y >> 4);
      }
      d[u] += e * scale(sa[i]) * scale(sb[j]);
    }
    out[(size_t)m * N + n] = d[u] * *alpha;
  }
}
