// cuBLAS in float32
#include <torch/extension.h>
#include <cublas_v2.h>
torch::Tensor forward(torch::Tensor x, torch::Tensor w) {
  int m = x.size(0), kk = x.size(1), n = w.size(1);
  auto o = torch::empty({m, n}, x.options());
  const float one = 1.f, zero = 0.f;
  static cublasHandle_t h = [] { cublasHandle_t t; cublasCreate(&t); return t; }();
  cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, n, m, kk, &one, w.data_ptr<float>(), n, x.data_ptr<float>(), kk, &zero, o.data_ptr<float>(), n);
  return o;
}
