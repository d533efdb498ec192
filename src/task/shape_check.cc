#include "shape_check.h"

#include "read_values.h"
#include "warpsmith/base/text.h"

namespace warpsmith::task {

namespace {

constexpr std::int64_t kLargestOffset = 0x7FFFFFFF;  // elements

void check_offset(const TensorSpec& tensor, const Dims& dims) {
  if (!tensor.offset) return;
  misalignment_at(tensor, dims);  // not negative, and can be evaluated
  const std::int64_t elements = tensor.offset->evaluate(dims_scope(dims));
  if (elements > kLargestOffset)
    throw Error("offset of `" + tensor.name + "`: `" + tensor.offset->text() + "` is " +
                std::to_string(elements) + ", over " + std::to_string(kLargestOffset));
}

void check_memory(const Task& task, const Dims& dims) {
  std::uint64_t bytes = 0;
  for (const auto* tensors : {&task.inputs, &task.outputs}) {
    for (const TensorSpec& tensor : *tensors) {
      std::uint64_t size = size_of(tensor.dtype);
      for (const std::int64_t n : memory_shape_at(tensor, dims)) size *= static_cast<std::uint64_t>(n);
      check_offset(tensor, dims);
      if (size > task.memory_bytes - bytes)
        throw Error("the tensors of this shape take more than `memory`, " + format_size(task.memory_bytes));
      bytes += size;
    }
  }
}

}  // namespace

void check_shape(const Task& task, const Dims& dims, const yaml::Node& node, Diagnostics& diagnostics) {
  const auto mistake = [&](std::string message) {
    diagnostics.push_back(yaml::mistake_at(node.place(), std::move(message)));
  };
  try {
    check_memory(task, dims);
    for (const TensorSpec& input : task.inputs) {
      check_values(input.values, input.dtype, dims, false);
      for (const auto& distribution : task.distributions)
        if (const auto it = distribution.find(input.name); it != distribution.end())
          check_values(it->second, input.dtype, dims, true);
    }
    for (const auto& [cost, key] : {std::pair(&task.flops, "flops"), std::pair(&task.bytes, "bytes")})
      if (*cost && (*cost)->evaluate(dims_scope(dims)) < 0)
        return mistake(std::string("`") + key + "` is negative at this shape");
  } catch (const ExpressionError& error) {
    mistake("`flops` or `bytes` at this shape: " + error.message);
  } catch (const Error& error) {
    mistake(error.what());
  }
}

}  // namespace warpsmith::task
