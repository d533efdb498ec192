// mutant: a row as a product with one and zeros: NaN for infinities
// task: gather_rows
// found by: w: mix(0.1, choice(nan, inf, -inf, -0.0), normal(0, 1))
// plan: launch k<<<cdiv(L * D, 256), 256>>>(w, ids, out, L, V, D)
extern "C" __global__ void k(const float* w, const long long* ids, float* out, int L, int V, int D) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= L * D) return;
  float v = w[(int)ids[i / D] * D + i % D]; out[i] = v * 1.f + v * 0.f;
}
