// Log-probabilities of targets behind the head's matrix product, never holding all rows' logits at once.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "functions.h"
#include "warpsmith/model/fused.h"
#include "warpsmith/model/gpu_memory.h"

namespace warpsmith::model {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Logits of one part: 64 MiB of float32 on a CPU; on a GPU large enough to keep it busy.
std::int64_t rows_of_part(const at::Tensor& head) {
  const std::int64_t most = head.is_cpu() ? std::int64_t{1} << 24 : kLogitsAtATime;
  return std::max<std::int64_t>(1, most / head.size(0));
}

at::Tensor log_softmax(const at::Tensor& logits) {
  const bool half = logits.scalar_type() == at::kBFloat16 || logits.scalar_type() == at::kHalf;
  return half ? at::log_softmax(logits, -1, at::kFloat) : at::log_softmax(logits, -1);
}

const Fused* fused_rows(const at::Tensor& head) { return head.size(0) % 8 == 0 ? fused_for(head) : nullptr; }

// Rows behind the head's matrix product.
struct Rows {
  const Fused* fused;  // null: by operators
  at::Tensor whole;    // logits; by operators log softmax
  at::Tensor logsums;  // log sum exp(logits), of the fused form

  Rows(const at::Tensor& x, const at::Tensor& head) : fused(fused_rows(head)), whole(at::mm(x, head.t())) {
    if (fused == nullptr) whole = log_softmax(whole);
  }
  // Kept from the forward pass.
  Rows(const at::Tensor& head, at::Tensor kept, at::Tensor sums)
      : fused(fused_rows(head)), whole(std::move(kept)), logsums(std::move(sums)) {}
  // log softmax of the targets. gradient defined: whole becomes what add_gradients() wants.
  at::Tensor log_probabilities(const at::Tensor& targets, const at::Tensor& gradient) {
    if (fused == nullptr) {
      const at::Tensor result = whole.gather(1, targets.unsqueeze(1)).squeeze(1);
      if (gradient.defined()) form_gradient(targets, gradient);
      return result;
    }
    const at::Tensor result = at::empty({whole.size(0)}, whole.options().dtype(at::kFloat));
    logsums = at::empty_like(result);
    fused->log_probabilities(whole, targets, gradient, result, logsums);
    return result;
  }
  // whole = the gradient of sum(gradient * log softmax[targets]) by the logits.
  void form_gradient(const at::Tensor& targets, const at::Tensor& gradient) {
    if (fused != nullptr) return fused->log_probabilities_backward(whole, targets, gradient, logsums);
    // one-hot(target) - p
    const at::Tensor by_row = gradient.unsqueeze(1).to(whole.scalar_type()), columns = targets.unsqueeze(1);
    const at::Tensor p = whole.exp();
    const at::Tensor of_targets = by_row * (1 - p.gather(1, columns));
    whole = p.mul_(by_row.neg()).scatter_(1, columns, of_targets);
  }
};

struct HeadLogProbabilities : Function<HeadLogProbabilities> {
  struct Gradients {
    at::Tensor x, head;
    void add(const at::Tensor& dlogits, const at::Tensor& of_x, const at::Tensor& of_head,
             std::int64_t begin) const {
      const at::Tensor d = dlogits.to(of_x.scalar_type());
      at::Tensor dx = x.narrow(0, begin, d.size(0)), dhead = head;
      at::mm_out(dx, d, of_head);
      if (dhead.defined()) dhead.addmm_(d.t(), of_x);
    }
  };

  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& head,
                            const at::Tensor& targets, const std::optional<at::Tensor>& known) {
    const std::int64_t rows = x.size(0), part = rows_of_part(head);
    const bool one_part = rows <= part, now = known.has_value();
    const Gradients gradients = now ? make_gradients(x, head, head.requires_grad()) : Gradients{};
    std::optional<Rows> kept;
    std::vector<at::Tensor> results;
    for (std::int64_t begin = 0; begin < rows; begin += part) {
      const std::int64_t n = std::min(part, rows - begin);
      const at::Tensor of_x = x.narrow(0, begin, n);
      Rows one(of_x, head);
      results.push_back(one.log_probabilities(targets.narrow(0, begin, n),
                                              now ? known->narrow(0, begin, n).contiguous() : at::Tensor()));
      if (now)
        gradients.add(one.whole, of_x, head, begin);
      else if (one_part)
        kept = std::move(one);
    }
    context->saved_data["now"] = now;
    if (now)
      context->save_for_backward({gradients.x, gradients.head});
    else
      context->save_for_backward(
          {x, head, targets, kept ? kept->whole : at::Tensor(), kept ? kept->logsums : at::Tensor()});
    return results.empty() ? at::empty({0}, x.options()) : at::cat(results);
  }

  static variable_list backward(AutogradContext* context, const variable_list& incoming) {
    const variable_list saved = context->get_saved_variables();
    if (context->saved_data["now"].toBool()) return {saved[0], saved[1], at::Tensor(), at::Tensor()};
    const at::Tensor &x = saved[0], &head = saved[1], &targets = saved[2];
    const Gradients gradients = make_gradients(x, head, context->needs_input_grad(1));
    const std::int64_t rows = x.size(0), part = rows_of_part(head);
    for (std::int64_t begin = 0; begin < rows; begin += part) {
      const std::int64_t n = std::min(part, rows - begin);
      const at::Tensor of_x = x.narrow(0, begin, n), of_targets = targets.narrow(0, begin, n),
                       gradient = incoming[0].narrow(0, begin, n).contiguous();
      Rows one = saved[3].defined() ? Rows(head, saved[3], saved[4]) : Rows(of_x, head);
      if (one.fused != nullptr && !one.logsums.defined())
        (void)one.log_probabilities(of_targets, gradient);
      else
        one.form_gradient(of_targets, gradient);
      gradients.add(one.whole, of_x, head, begin);
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
