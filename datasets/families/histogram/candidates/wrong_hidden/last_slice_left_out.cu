// Each block counts 8192 bins in shared memory and leaves the other values to blocks of other slices.
// plan: let parts = min(cdiv(N, 4096), max(1, 4 * SMS / cdiv(V, 8192)))
// plan: copy out <- c
// plan: launch k<<<dim3(parts, max(1, V / 8192)), 256>>>(x, out, N, V)
extern "C" __global__ void k(const int* x, int* out, int N, int V) {
  __shared__ int s[8192];
  int first = blockIdx.y * 8192, bins = min(8192, V - first);
  for (int u = threadIdx.x; u < bins; u += 256) s[u] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 256 + threadIdx.x; i < N; i += gridDim.x * 256) {
    unsigned u = x[i] - first;
    if (u < bins) atomicAdd(s + u, 1);
  }
  __syncthreads();
  for (int u = threadIdx.x; u < bins; u += 256)
    if (s[u]) atomicAdd(out + first + u, s[u]);
}
