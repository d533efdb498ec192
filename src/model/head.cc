// Log-probabilities of targets behind the head's matrix product, never holding all rows' logits at once.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "functions.h"

namespace warpsmith::model {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Logits of one part: 64 MiB of float32 on a CPU; on a GPU large enough to keep it busy.
std::int64_t rows_of_part(const at::Tensor& head) {
  const std::int64_t most = std::int64_t{1} << (head.is_cpu() ? 24 : 28);
  return std::max<std::int64_t>(1, most / head.size(0));
}

at::Tensor log_softmax(const at::Tensor& logits) {
  const bool half = logits.scalar_type() == at::kBFloat16 || logits.scalar_type() == at::kHalf;
  return half ? at::log_softmax(logits, -1, at::kFloat) : at::log_softmax(logits, -1);
}

struct HeadLogProbabilities : Function<HeadLogProbabilities> {
  struct Gradients {
    at::Tensor x, head;
  };

  // Adds the gradients of rows [begin, begin + n). `whole`: their softmax, overwritten.
  static void add_gradients(const Gradients& to, at::Tensor whole, const at::Tensor& x,
                            const at::Tensor& head, const at::Tensor& targets, const at::Tensor& gradient,
                            std::int64_t begin) {
    const std::int64_t n = whole.size(0);
    const at::Tensor by_row = gradient.narrow(0, begin, n).unsqueeze(1).to(whole.scalar_type());
    const at::Tensor columns = targets.narrow(0, begin, n).unsqueeze(1);
    // d log p[target] / d logits = one-hot(target) - p
    const at::Tensor of_targets = by_row * (1 - whole.gather(1, columns));
    whole.mul_(by_row.neg()).scatter_(1, columns, of_targets);
    const at::Tensor dlogits = whole.to(x.scalar_type());
    at::Tensor dx = to.x.narrow(0, begin, n), dhead = to.head;
    if (dx.defined()) at::mm_out(dx, dlogits, head);
    if (dhead.defined()) dhead.addmm_(dlogits.t(), x.narrow(0, begin, n));
  }

  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& head,
                            const at::Tensor& targets, const std::optional<at::Tensor>& known) {
    const std::int64_t rows = x.size(0), part = rows_of_part(head);
    const bool one_part = rows <= part, now = known.has_value();
    const Gradients gradients = now ? make_gradients(x, head, head.requires_grad()) : Gradients{};
    at::Tensor kept;
    std::vector<at::Tensor> results;
    for (std::int64_t begin = 0; begin < rows; begin += part) {
      const std::int64_t n = std::min(part, rows - begin);
      const at::Tensor whole = log_softmax(at::mm(x.narrow(0, begin, n), head.t()));
      results.push_back(whole.gather(1, targets.narrow(0, begin, n).unsqueeze(1)).squeeze(1));
      if (now)
        add_gradients(gradients, whole.exp(), x, head, targets, *known, begin);
      else if (one_part)
        kept = whole;
    }
    context->saved_data["now"] = now;
    context->save_for_backward(now ? variable_list{gradients.x, gradients.head}
                                   : variable_list{x, head, targets, kept});
    return results.empty() ? at::empty({0}, x.options()) : at::cat(results);
  }

  static variable_list backward(AutogradContext* context, const variable_list& incoming) {
    const variable_list saved = context->get_saved_variables();
    if (context->saved_data["now"].toBool()) return {saved[0], saved[1], at::Tensor(), at::Tensor()};
    const at::Tensor &x = saved[0], &head = saved[1], &targets = saved[2], &kept = saved[3];
    const Gradients gradients = make_gradients(x, head, context->needs_input_grad(1));
    const std::int64_t rows = x.size(0), part = rows_of_part(head);
    for (std::int64_t begin = 0; begin < rows; begin += part) {
      const std::int64_t n = std::min(part, rows - begin);
      const at::Tensor whole =
          kept.defined() ? kept.exp() : log_softmax(at::mm(x.narrow(0, begin, n), head.t())).exp_();
      add_gradients(gradients, whole, x, head, targets, incoming[0], begin);
    }
    return {gradients.x, gradients.head, at::Tensor(), at::Tensor()};
  }

  static Gradients make_gradients(const at::Tensor& x, const at::Tensor& head, bool of_head) {
    return {at::empty(x.sizes(), x.options()), of_head ? at::zeros_like(head) : at::Tensor()};
  }
};

}  // namespace

at::Tensor head_log_probabilities(const at::Tensor& x, const at::Tensor& head, const at::Tensor& targets,
                                  const at::Tensor& known) {
  return HeadLogProbabilities::apply(x, head, targets, known.defined() ? std::optional(known) : std::nullopt);
}

}  // namespace warpsmith::model
