#include "torch_program.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/jit.h>

#include "warpsmith/base/text.h"

namespace warpsmith::measure {

at::ScalarType scalar_type(task::Dtype dtype) {
  using task::Dtype;
  switch (dtype) {
    case Dtype::kFloat64:
      return at::kDouble;
    case Dtype::kFloat32:
      return at::kFloat;
    case Dtype::kFloat16:
      return at::kHalf;
    case Dtype::kBfloat16:
      return at::kBFloat16;
    case Dtype::kFloat8E4m3:
      return at::kFloat8_e4m3fn;
    case Dtype::kFloat8E5m2:
      return at::kFloat8_e5m2;
    case Dtype::kInt64:
      return at::kLong;
    case Dtype::kInt32:
      return at::kInt;
    case Dtype::kInt16:
      return at::kShort;
    case Dtype::kInt8:
      return at::kChar;
    case Dtype::kUint8:
      return at::kByte;
    case Dtype::kBool:
      return at::kBool;
  }
  return at::kFloat;
}

std::string shape_text(at::IntArrayRef shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

std::vector<std::int64_t> to_vector(at::IntArrayRef shape) { return {shape.begin(), shape.end()}; }

at::Tensor input_over(const task::TensorSpec& input, const task::Dims& dims,
                      std::span<const std::byte> memory, Place place) {
  void* bytes = const_cast<std::byte*>(memory.data());
  const std::vector<std::int64_t> shape = task::shape_at(input, dims);
  const at::TensorOptions options =
      at::TensorOptions(scalar_type(input.dtype))
          .device(place == Place::kGpu ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU));
  return input.strides.empty() ? at::from_blob(bytes, shape, options)
                               : at::from_blob(bytes, shape, task::strides_at(input, dims), options);
}

// The interpreter puts its traceback before the message, operators their stack after it.
namespace {

// The word behind `before` in `text`, with its unit: "8.00 GiB". Empty where it is not there.
std::string amount_behind(const std::string& text, const std::string& before) {
  const std::size_t at = text.find(before);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + before.size();
  const std::size_t unit = text.find(' ', begin);
  return unit == std::string::npos ? "" : text.substr(begin, text.find_first_of(" .\n", unit + 1) - begin);
}

// What torch says where the GPU has no memory left, in short; else as it is.
std::string without_advice(const std::string& text) {
  if (text.find("CUDA out of memory") == std::string::npos) return text;
  const std::string wanted = amount_behind(text, "Tried to allocate "),
                    all = amount_behind(text, "total capacity of "), left = amount_behind(text, "of which ");
  if (wanted.empty() || all.empty() || left.empty()) return "it does not fit on this GPU: " + text;
  return "it does not fit on this GPU: it wants another " + wanted + ", and of " + all + " " + left +
         " are free";
}

}  // namespace

std::string in_a_line(const std::exception& error) {
  if (const auto* torch_error = dynamic_cast<const c10::Error*>(&error)) {
    const std::string text = torch_error->what_without_backtrace();
    return without_advice(text.substr(0, text.find('\n')));
  }
  const std::vector<std::string> lines = split_lines(trim(error.what()));
  return lines.empty() ? "no message" : without_advice(trim(lines.back()));
}

TorchProgram::TorchProgram(const task::Task& task, const std::string& text, const std::string& key,
                           const std::string& function, std::size_t arguments, const std::string& given) {
  const auto refuse = [&](const std::string& why) {
    throw InvalidInput({{(task.folder / "task.yaml").string(), 0, 0, key + ": " + why, ""}});
  };
  try {
    unit_ = torch::jit::compile(text);
    function_ = unit_->find_function(c10::QualifiedName(function));
  } catch (const c10::Error& e) {
    refuse(e.what_without_backtrace());
  } catch (const std::exception& e) {
    refuse(e.what());
  }
  if (function_ == nullptr) refuse("there is no function `" + function + "`");
  const std::size_t has = function_->getSchema().arguments().size();
  if (has != arguments)
    refuse("`" + function + "` takes " + std::to_string(has) + " arguments, the task has " +
           std::to_string(arguments) + " " + given);
}

std::vector<at::Tensor> tensors_of(const c10::IValue& value, const task::Task& task, const std::string& who) {
  if (value.isTensor()) return {value.toTensor()};
  if (value.isTensorList()) return value.toTensorVector();
  std::vector<at::Tensor> tensors;
  if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) {
      if (!element.isTensor()) break;
      tensors.push_back(element.toTensor());
    }
    if (tensors.size() == value.toTupleRef().elements().size()) return tensors;
  }
  throw Error("task " + task.id + ": " + who + " does not return a tensor or a tuple of tensors");
}

void check_tensor(const at::Tensor& tensor, const task::TensorSpec& spec, const task::Dims& dims,
                  bool same_type, const task::Task& task, const std::string& what) {
  if (!same_type)
    throw Error("task " + task.id + ": " + what + " is " + std::string(at::toString(tensor.scalar_type())) +
                ", the task says " + std::string(task::to_string(spec.dtype)));
  const std::vector<std::int64_t> shape = task::shape_at(spec, dims);
  if (to_vector(tensor.sizes()) != shape)
    throw Error("task " + task.id + ": " + what + " has shape " + shape_text(tensor.sizes()) +
                ", the task says " + shape_text(shape));
}

}  // namespace warpsmith::measure
