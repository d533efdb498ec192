// plan: launch k<<<cdiv(N, 128), 128>>>(v, x, out, N)
extern "C" __global__ void k(const double* v, const double* x, double* out, int N) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < N) out[i] = log(cyl_bessel_i(v[i], x[i]));
}
