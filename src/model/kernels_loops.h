// The loops of kernels.h. Included by one source file for each instruction set, inside a namespace of its
// own, so that the linker never takes one's code for the other.
#pragma once

#include <bit>
#include <cmath>

#include "warpsmith/model/kernels.h"

namespace warpsmith::model {
namespace {

// exp without a call, so that loops around it become vector code. Error below 2 ulp in [-87, 88]; clamped
// outside.
inline float exponential(float x) {
  x = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float n = (x * 1.44269504f + kRound) - kRound;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;  // ln 2 in two parts (Cephes)
  float y = 1.9875691500e-4f;
  y = y * r + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * r * r + r + 1.0f;
  return y * std::bit_cast<float>((static_cast<std::int32_t>(n) + 127) << 23);
}
inline double exponential(double x) { return std::exp(x); }

template <typename T>
T dot(const T* a, const T* b, std::int64_t n) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

template <typename T>
void rms_norm(const T* x, const T* weight, T* y, T* inverse, std::int64_t rows, std::int64_t width,
              double epsilon) {
  for (std::int64_t r = 0; r < rows; ++r, x += width, y += width) {
    const T mean = dot(x, x, width) / static_cast<T>(width);
    const T inv = T{1} / std::sqrt(mean + static_cast<T>(epsilon));
    inverse[r] = inv;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) y[i] = x[i] * inv * weight[i];
  }
}

template <typename T>
void rms_norm_backward(const T* dy, const T* x, const T* weight, const T* inverse, T* dx, T* dweight,
                       std::int64_t rows, std::int64_t width) {
  for (std::int64_t r = 0; r < rows; ++r, dy += width, x += width, dx += width) {
    const T inv = inverse[r];
    T sum = 0;  // of dy * weight * x
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < width; ++i) sum += dy[i] * weight[i] * x[i];
    const T back = sum * inv * inv * inv / static_cast<T>(width);
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      dx[i] = dy[i] * weight[i] * inv - x[i] * back;
      dweight[i] += dy[i] * x[i] * inv;
    }
  }
}

template <typename T>
void swiglu(const T* gate_up, T* out, std::int64_t rows, std::int64_t hidden) {
  for (std::int64_t r = 0; r < rows; ++r, gate_up += 2 * hidden, out += hidden) {
    const T* gate = gate_up;
    const T* up = gate_up + hidden;
#pragma omp simd
    for (std::int64_t i = 0; i < hidden; ++i) out[i] = gate[i] / (T{1} + exponential(-gate[i])) * up[i];
  }
}

template <typename T>
void swiglu_backward(const T* dout, const T* gate_up, T* dgate_up, std::int64_t rows, std::int64_t hidden) {
  for (std::int64_t r = 0; r < rows; ++r, dout += hidden, gate_up += 2 * hidden, dgate_up += 2 * hidden) {
    const T* gate = gate_up;
    const T* up = gate_up + hidden;
    T* dgate = dgate_up;
    T* dup = dgate_up + hidden;
#pragma omp simd
    for (std::int64_t i = 0; i < hidden; ++i) {
      const T s = T{1} / (T{1} + exponential(-gate[i]));
      dgate[i] = dout[i] * up[i] * s * (T{1} + gate[i] * (T{1} - s));
      dup[i] = dout[i] * gate[i] * s;
    }
  }
}

template <typename T>
void rotate(T* x, std::int64_t stride, std::int64_t rows, std::int64_t heads, std::int64_t head_dim,
            const std::int64_t* positions, const T* cosine, const T* sine, int sign) {
  const std::int64_t half = head_dim / 2;
  const T direction = static_cast<T>(sign);
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* c = cosine + positions[r] * half;
    const T* s = sine + positions[r] * half;
    for (std::int64_t h = 0; h < heads; ++h) {
      T* low = x + r * stride + h * head_dim;
      T* high = low + half;
#pragma omp simd
      for (std::int64_t i = 0; i < half; ++i) {
        const T a = low[i], b = high[i], sine_i = direction * s[i];
        low[i] = a * c[i] - b * sine_i;
        high[i] = b * c[i] + a * sine_i;
      }
    }
  }
}

template <typename T>
T exponentials(T* p, std::int64_t keys, std::int64_t width, T scale, T& largest) {
  T most = p[0];
#pragma omp simd reduction(max : most)
  for (std::int64_t i = 0; i < keys; ++i) most = p[i] > most ? p[i] : most;
  most *= scale;
  largest = most;
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < keys; ++i) {
    const T e = exponential(scale * p[i] - most);
    p[i] = e;
    sum += e;
  }
  for (std::int64_t i = keys; i < width; ++i) p[i] = 0;
  return sum;
}

template <typename T>
void probabilities(T* p, std::int64_t keys, std::int64_t width, T scale, T log_sum) {
#pragma omp simd
  for (std::int64_t i = 0; i < keys; ++i) p[i] = exponential(scale * p[i] - log_sum);
  for (std::int64_t i = keys; i < width; ++i) p[i] = 0;
}

template <typename T>
void score_gradients(const T* p, T* dp, std::int64_t width, T d, T scale) {
#pragma omp simd
  for (std::int64_t i = 0; i < width; ++i) dp[i] = p[i] * (dp[i] - d) * scale;
}

template <typename T>
void multiply(T* x, std::int64_t n, T factor) {
  for (std::int64_t i = 0; i < n; ++i) x[i] *= factor;
}

template <typename T>
void add_vector_matrix(const T* a, const T* matrix, std::int64_t stride, std::int64_t rows,
                       std::int64_t columns, T* out) {
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {  // four at a time: `out` is loaded and stored once for them
    const T *m0 = matrix + r * stride, *m1 = m0 + stride, *m2 = m1 + stride, *m3 = m2 + stride;
    const T a0 = a[r], a1 = a[r + 1], a2 = a[r + 2], a3 = a[r + 3];
#pragma omp simd
    for (std::int64_t c = 0; c < columns; ++c)
      out[c] += (a0 * m0[c] + a1 * m1[c]) + (a2 * m2[c] + a3 * m3[c]);
  }
  for (; r < rows; ++r) {
#pragma omp simd
    for (std::int64_t c = 0; c < columns; ++c) out[c] += a[r] * matrix[r * stride + c];
  }
}

template <typename T>
double sum_of_squares(const T* x, std::int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

template <typename T>
void adamw(T* weight, const T* gradient, T* first, T* second, const T* decay, std::int64_t n,
           double gradient_factor, const AdamWStep& step) {
  const auto factor = static_cast<T>(gradient_factor);
  const auto beta1 = static_cast<T>(step.beta1), beta2 = static_cast<T>(step.beta2);
  const auto rate = static_cast<T>(step.learning_rate);
  const auto size = static_cast<T>(step.learning_rate / step.correction1);
  const auto root = static_cast<T>(1.0 / std::sqrt(step.correction2));
  const auto epsilon = static_cast<T>(step.epsilon);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const T g = gradient[i] * factor;
    const T m = beta1 * first[i] + (T{1} - beta1) * g;
    const T v = beta2 * second[i] + (T{1} - beta2) * g * g;
    first[i] = m;
    second[i] = v;
    weight[i] -= rate * decay[i] * weight[i] + size * m / (std::sqrt(v) * root + epsilon);
  }
}

template <typename T>
constexpr Kernels<T> kTable = {
    .rms_norm = rms_norm<T>,
    .rms_norm_backward = rms_norm_backward<T>,
    .swiglu = swiglu<T>,
    .swiglu_backward = swiglu_backward<T>,
    .rotate = rotate<T>,
    .exponentials = exponentials<T>,
    .probabilities = probabilities<T>,
    .score_gradients = score_gradients<T>,
    .dot = dot<T>,
    .multiply = multiply<T>,
    .add_vector_matrix = add_vector_matrix<T>,
    .sum_of_squares = sum_of_squares<T>,
    .adamw = adamw<T>,
};

}  // namespace
}  // namespace warpsmith::model
