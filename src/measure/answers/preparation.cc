#include "answers/preparation.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/ir.h>

namespace warpsmith::measure {

namespace {

// The operator that draws, if one does.
std::string random_operator(const torch::jit::Block& block) {
  for (const torch::jit::Node* node : block.nodes()) {
    if (node->isNondeterministic()) return node->kind().toUnqualString();
    for (const torch::jit::Block* inner : node->blocks())
      if (const std::string found = random_operator(*inner); !found.empty()) return found;
  }
  return "";
}

// Equal draws become equal values: operators that have a repeatable form take it, and say nothing of those
// that have none.
class Repeatable {
 public:
  Repeatable()
      : algorithms_(at::globalContext().deterministicAlgorithms()),
        warn_only_(at::globalContext().deterministicAlgorithmsWarnOnly()) {
    at::globalContext().setDeterministicAlgorithms(true, true);
  }
  ~Repeatable() { at::globalContext().setDeterministicAlgorithms(algorithms_, warn_only_); }
  Repeatable(const Repeatable&) = delete;
  Repeatable& operator=(const Repeatable&) = delete;

 private:
  struct Silent : c10::WarningHandler {
    void process(const c10::Warning&) override {}
  };
  bool algorithms_, warn_only_;
  Silent silent_;
  c10::WarningUtils::WarningHandlerGuard guard_{&silent_};
};

}  // namespace

Preparation::Preparation(const task::Task& task, Place place) : task_(task), place_(place) {
  if (task.prepare.empty()) return;
  program_ = TorchProgram(task, task.prepare, "prepare", "prepare", task.prepared.size(), "inputs for it");
  const std::string draws =
      random_operator(*torch::jit::toGraphFunction(program_.function()).graph()->block());
  if (!draws.empty())
    throw InvalidInput({{(task.folder / "task.yaml").string(), 0, 0,
                         "prepare: it draws at random (" + draws + ")", "only `values` draw"}});
}

void Preparation::run(const task::Dims& dims, const std::vector<std::span<std::byte>>& inputs,
                      Place memory) const {
  if (task_.prepare.empty()) return;
  const c10::InferenceMode inference;
  const Repeatable repeatable;
  set_math("strict");
  naming(task_, "prepare fails", [&] {
    std::vector<at::Tensor> draws;
    std::vector<c10::IValue> stack;
    for (const std::size_t i : task_.prepared) {
      draws.push_back(input_over(task_.inputs[i], dims, inputs.at(i), memory));
      stack.emplace_back(
          draws.back().to(place_ == Place::kGpu ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU),
                          draws.back().scalar_type(), false, true));
    }
    program_.function().run(stack);
    const std::vector<at::Tensor> made = tensors_of(stack.back(), task_, "prepare");
    if (made.size() != draws.size())
      throw Error("task " + task_.id + ": prepare returns " + std::to_string(made.size()) + " tensors for " +
                  std::to_string(draws.size()) + " inputs");
    for (std::size_t i = 0; i < made.size(); ++i) {
      const task::TensorSpec& input = task_.inputs[task_.prepared[i]];
      check_tensor(made[i], input, dims, made[i].scalar_type() == draws[i].scalar_type(), task_,
                   "`" + input.name + "` of prepare");
    }
    for (std::size_t i = 0; i < made.size(); ++i) draws[i].copy_(made[i]);
  });
}

}  // namespace warpsmith::measure
