// plan: const G <- w
// plan: launch k<<<1, 64>>>(x, out, C)
__constant__ float G[C * 9];
extern "C" __global__ void k(const float* x, float* out, int C) {
  out[threadIdx.x] = x[threadIdx.x] * G[0];
}
