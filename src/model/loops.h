// The decoder's operations besides matrix products, as fused loops on the CPU in float32 or float64,
// differentiable once. Quicker than ATen's operators for small models: the quickstart's time hangs on it
// (tests/bench/model_bench shows both).
#pragma once

#include "loops_attention.h"

namespace warpsmith::model::loops {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon);
at::Tensor swiglu(const at::Tensor& gate_up);
at::Tensor attention(const at::Tensor& qkv, const at::Tensor& cosine, const at::Tensor& sine,
                     const Packing& packing);

// In place, on plain memory.
void rotate_rows(at::Tensor& qkv, const at::Tensor& positions, const at::Tensor& cosine,
                 const at::Tensor& sine, const HeadShape& shape, int sign);

}  // namespace warpsmith::model::loops
