// plan: launch k<<<cdiv(N, 128), 128>>>(v, x, out, N)
// log Gamma(v + 1): Stirling's series 16 orders above, and the factors between.
__device__ double log_gamma(double v) {
  double z = v + 17, q = 1 / (z * z), product = 1;
  for (int k = 1; k <= 16; k++) product *= v + k;
  double tail = (1 / 12.0 - q * (1 / 360.0 - q * (1 / 1260.0 - q / 1680))) / z;
  return (z - 0.5) * log(z) - z + 0.918938533204672742 + tail - log(product);
}
__device__ double small(double v, double x) {
  double q = x * x / 4, term = 1, sum = 1;
  for (int k = 1; term > 1e-17 * sum; k++) sum += term *= q / (k * (k + v));
  return v * log(x / 2) - log_gamma(v) + log(sum);
}
extern "C" __global__ void k(const double* v, const double* x, double* out, int N) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < N) out[i] = small(v[i], x[i]);
}
