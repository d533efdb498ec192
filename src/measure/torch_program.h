// A function of TorchScript from a task's file, and tensors over memory: what the reference and `prepare`
// share.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "warpsmith/measure/reference.h"
#include "warpsmith/task/task.h"

namespace torch::jit {
struct CompilationUnit;
}

namespace warpsmith::measure {

at::ScalarType scalar_type(task::Dtype dtype);
std::string shape_text(at::IntArrayRef shape);
std::vector<std::int64_t> to_vector(at::IntArrayRef shape);

// An input over its memory at `place`, without a copy.
at::Tensor input_over(const task::TensorSpec& input, const task::Dims& dims,
                      std::span<const std::byte> memory, Place place);

// What torch has to say, in a line. Where a GPU's memory was too small that is said first: "it does not fit
// on this GPU: it wants another 8.00 GiB, and of 79.18 GiB 4.04 GiB are free".
std::string in_a_line(const std::exception& error);

// Calls `run`; what torch throws becomes an Error: "task gelu: the reference fails: …".
template <typename Run>
auto naming(const task::Task& task, const std::string& what, Run run) {
  try {
    return run();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    throw Error("task " + task.id + ": " + what + ": " + in_a_line(e));
  }
}

class TorchProgram {
 public:
  TorchProgram() = default;
  // `key`: of task.yaml, whose text this is. Throws InvalidInput with torch's message, naming task.yaml,
  // where it does not compile, has no `function`, or one that takes another number of arguments; `given`:
  // what these are.
  TorchProgram(const task::Task& task, const std::string& text, const std::string& key,
               const std::string& function, std::size_t arguments, const std::string& given);
  torch::jit::Function& function() const { return *function_; }

 private:
  std::shared_ptr<torch::jit::CompilationUnit> unit_;
  torch::jit::Function* function_ = nullptr;
};

// The tensors that a program returned: one, or a tuple or list of them. Throws Error; `who`: "the reference".
std::vector<at::Tensor> tensors_of(const c10::IValue& value, const task::Task& task,
                                   const std::string& who = "the reference");
// Throws where `tensor` has not this dtype (`same_type`) and shape; `what`: "output `out` of the reference".
void check_tensor(const at::Tensor& tensor, const task::TensorSpec& spec, const task::Dims& dims,
                  bool same_type, const task::Task& task, const std::string& what);

}  // namespace warpsmith::measure
