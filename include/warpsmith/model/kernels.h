// Loops over rows that are not matrix products, for float and double, each fusing what ATen would do in
// several passes. Plain C++ without torch types: kernels_loops.h is compiled once for each instruction set,
// and the CPU decides which copy runs. All matrices are row-major; a `stride` counts elements between rows.
// Callers split the rows over threads.
#pragma once

#include <cstdint>

namespace warpsmith::model {

// One AdamW step (Loshchilov, Hutter 2019). correction1, correction2: 1 - beta^t.
struct AdamWStep {
  double learning_rate, beta1, beta2, epsilon, correction1, correction2;
};

template <typename T>
struct Kernels {
  using Size = std::int64_t;
  // y = x * inverse * weight, inverse = 1 / sqrt(mean(x^2) + epsilon). x, y: [rows, width]; inverse: [rows].
  void (*rms_norm)(const T* x, const T* weight, T* y, T* inverse, Size rows, Size width, double epsilon);
  // dx is set, dweight [width] is added to.
  void (*rms_norm_backward)(const T* dy, const T* x, const T* weight, const T* inverse, T* dx, T* dweight,
                            Size rows, Size width);
  // out = silu(gate) * up. gate_up: [rows, 2 * hidden], gates first; out: [rows, hidden].
  void (*swiglu)(const T* gate_up, T* out, Size rows, Size hidden);
  void (*swiglu_backward)(const T* dout, const T* gate_up, T* dgate_up, Size rows, Size hidden);
  // Rotates the pairs (i, i + head_dim/2) of each head of a row by its position's angles; sign -1: back.
  // x: [rows, heads * head_dim] with stride; cosine, sine: [positions, head_dim/2].
  void (*rotate)(T* x, Size stride, Size rows, Size heads, Size head_dim, const Size* positions,
                 const T* cosine, const T* sine, int sign);
  // p[0…keys) = exp(scale * p - largest), the rest up to `width` = 0. Returns the sum, sets `largest`.
  T (*exponentials)(T* p, Size keys, Size width, T scale, T& largest);
  // p[0…keys) = exp(scale * p - log_sum), the rest up to `width` = 0.
  void (*probabilities)(T* p, Size keys, Size width, T scale, T log_sum);
  // dp = p * (dp - d) * scale
  void (*score_gradients)(const T* p, T* dp, Size width, T d, T scale);
  T (*dot)(const T* a, const T* b, Size n);
  void (*multiply)(T* x, Size n, T factor);
  // out[columns] += a[rows] * matrix[rows, columns]
  void (*add_vector_matrix)(const T* a, const T* matrix, Size stride, Size rows, Size columns, T* out);
  double (*sum_of_squares)(const T* x, Size n);
  // Gradients are multiplied by gradient_factor first. decay: the weight decay of each element.
  void (*adamw)(T* weight, const T* gradient, T* first, T* second, const T* decay, Size n,
                double gradient_factor, const AdamWStep& step);
};

// The copy for this CPU. T is float or double.
template <typename T>
const Kernels<T>& kernels();

}  // namespace warpsmith::model
