#include "loops.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "warpsmith/model/kernels.h"

namespace warpsmith::model::loops {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

constexpr std::int64_t kRows = 64;  // rows that a thread takes at least

struct RmsNorm : Function<RmsNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& weight,
                            double epsilon) {
    const at::Tensor x = input.contiguous();
    at::Tensor y = at::empty_like(x), inverse = at::empty({x.size(0)}, x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rms_norm", [&] {
      at::parallel_for(0, x.size(0), kRows, [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t width = x.size(1), at = begin * width;
        kernels<scalar_t>().rms_norm(x.const_data_ptr<scalar_t>() + at, weight.const_data_ptr<scalar_t>(),
                                     y.mutable_data_ptr<scalar_t>() + at,
                                     inverse.mutable_data_ptr<scalar_t>() + begin, end - begin, width,
                                     epsilon);
      });
    });
    context->save_for_backward({x, weight, inverse});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &inverse = saved[2], dy = gradients[0].contiguous();
    const std::int64_t rows = x.size(0), width = x.size(1);
    // Partial sums over runs of rows whose length does not depend on the number of threads, added up in
    // order.
    constexpr std::int64_t kRun = 256;
    const std::int64_t runs = (rows + kRun - 1) / kRun;
    at::Tensor dx = at::empty_like(x), partial = at::zeros({runs, width}, x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rms_norm_backward", [&] {
      at::parallel_for(0, runs, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t run = begin; run < end; ++run) {
          const std::int64_t first = run * kRun, at = first * width;
          kernels<scalar_t>().rms_norm_backward(
              dy.const_data_ptr<scalar_t>() + at, x.const_data_ptr<scalar_t>() + at,
              weight.const_data_ptr<scalar_t>(), inverse.const_data_ptr<scalar_t>() + first,
              dx.mutable_data_ptr<scalar_t>() + at, partial.mutable_data_ptr<scalar_t>() + run * width,
              std::min(kRun, rows - first), width);
        }
      });
    });
    return {dx, partial.sum(0), at::Tensor()};
  }
};

struct SwiGlu : Function<SwiGlu> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate_up) {
    const std::int64_t hidden = gate_up.size(1) / 2;
    at::Tensor out = at::empty({gate_up.size(0), hidden}, gate_up.options());
    AT_DISPATCH_FLOATING_TYPES(gate_up.scalar_type(), "swiglu", [&] {
      at::parallel_for(0, out.size(0), kRows, [&](std::int64_t begin, std::int64_t end) {
        kernels<scalar_t>().swiglu(gate_up.const_data_ptr<scalar_t>() + begin * 2 * hidden,
                                   out.mutable_data_ptr<scalar_t>() + begin * hidden, end - begin, hidden);
      });
    });
    context->save_for_backward({gate_up});
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor gate_up = context->get_saved_variables()[0], dout = gradients[0].contiguous();
    const std::int64_t hidden = gate_up.size(1) / 2;
    at::Tensor dgate_up = at::empty_like(gate_up);
    AT_DISPATCH_FLOATING_TYPES(gate_up.scalar_type(), "swiglu_backward", [&] {
      at::parallel_for(0, dout.size(0), kRows, [&](std::int64_t begin, std::int64_t end) {
        kernels<scalar_t>().swiglu_backward(dout.const_data_ptr<scalar_t>() + begin * hidden,
                                            gate_up.const_data_ptr<scalar_t>() + begin * 2 * hidden,
                                            dgate_up.mutable_data_ptr<scalar_t>() + begin * 2 * hidden,
                                            end - begin, hidden);
      });
    });
    return {dgate_up};
  }
};

struct Attention : Function<Attention> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& qkv, const at::Tensor& cosine,
                            const at::Tensor& sine, const Packing& packing) {
    const HeadShape& shape = packing.shape;
    at::Tensor rotated = qkv.clone();
    rotate_rows(rotated, packing.positions, cosine, sine, shape, 1);
    at::Tensor out = at::empty({qkv.size(0), shape.heads * shape.head_dim}, qkv.options());
    at::Tensor log_sums = at::empty({shape.heads, qkv.size(0)}, qkv.options());
    attention_forward(rotated, packing.segments, shape, out, log_sums);
    context->save_for_backward({rotated, out, log_sums, packing.positions, cosine, sine});
    auto& data = context->saved_data;
    std::vector<std::int64_t> numbers = {shape.heads, shape.kv_heads, shape.head_dim};
    for (const Segment& s : packing.segments) numbers.insert(numbers.end(), {s.begin, s.length, s.prefix});
    data["plan"] = numbers;
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const std::vector<std::int64_t> numbers = context->saved_data["plan"].toIntVector();
    const HeadShape shape{numbers[0], numbers[1], numbers[2]};
    std::vector<Segment> segments;
    for (std::size_t i = 3; i < numbers.size(); i += 3)
      segments.push_back({numbers[i], numbers[i + 1], numbers[i + 2]});
    at::Tensor dqkv = at::empty_like(saved[0]);
    attention_backward(saved[0], saved[1], saved[2], gradients[0].contiguous(), segments, shape, dqkv);
    rotate_rows(dqkv, saved[3], saved[4], saved[5], shape, -1);
    return {dqkv, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

void rotate_rows(at::Tensor& qkv, const at::Tensor& positions, const at::Tensor& cosine,
                 const at::Tensor& sine, const HeadShape& shape, int sign) {
  const std::int64_t stride = qkv.size(1);
  AT_DISPATCH_FLOATING_TYPES(qkv.scalar_type(), "rotate", [&] {
    at::parallel_for(0, qkv.size(0), kRows, [&](std::int64_t begin, std::int64_t end) {
      kernels<scalar_t>().rotate(qkv.mutable_data_ptr<scalar_t>() + begin * stride, stride, end - begin,
                                 shape.heads + shape.kv_heads, shape.head_dim,
                                 positions.const_data_ptr<std::int64_t>() + begin,
                                 cosine.const_data_ptr<scalar_t>(), sine.const_data_ptr<scalar_t>(), sign);
    });
  });
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  return RmsNorm::apply(x, weight, epsilon);
}

at::Tensor swiglu(const at::Tensor& gate_up) { return SwiGlu::apply(gate_up); }

at::Tensor attention(const at::Tensor& qkv, const at::Tensor& cosine, const at::Tensor& sine,
                     const Packing& packing) {
  return Attention::apply(qkv, cosine, sine, packing);
}

}  // namespace warpsmith::model::loops
