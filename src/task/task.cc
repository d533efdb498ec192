#include "warpsmith/task/task.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "warpsmith/base/sha256.h"
#include "warpsmith/base/text.h"

namespace warpsmith::task {

namespace {

struct DtypeFacts {
  std::string_view name;
  std::size_t bytes;
  bool floating;
};
// In the order of Dtype.
constexpr std::array<DtypeFacts, 12> kDtypes = {{{"float64", 8, true},
                                                 {"float32", 4, true},
                                                 {"float16", 2, true},
                                                 {"bfloat16", 2, true},
                                                 {"float8_e4m3", 1, true},
                                                 {"float8_e5m2", 1, true},
                                                 {"int64", 8, false},
                                                 {"int32", 4, false},
                                                 {"int16", 2, false},
                                                 {"int8", 1, false},
                                                 {"uint8", 1, false},
                                                 {"bool", 1, false}}};

const DtypeFacts& facts(Dtype dtype) { return kDtypes[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::string_view to_string(Dtype dtype) { return facts(dtype).name; }

std::optional<Dtype> parse_dtype(std::string_view name) {
  for (std::size_t i = 0; i < kDtypes.size(); ++i)
    if (kDtypes[i].name == name) return static_cast<Dtype>(i);
  return std::nullopt;
}

std::size_t size_of(Dtype dtype) { return facts(dtype).bytes; }

bool is_floating(Dtype dtype) { return facts(dtype).floating; }

std::string_view to_string(Split split) {
  switch (split) {
    case Split::kTrain:
      return "train";
    case Split::kSftOnly:
      return "sft_only";
    case Split::kHeldoutCombination:
      return "heldout_combination";
    case Split::kHeldoutOperation:
      return "heldout_operation";
    case Split::kHeldoutLength:
      return "heldout_length";
    case Split::kExtra:
      return "extra";
  }
  return "?";
}

Scope dims_scope(const Dims& dims) {
  Scope scope;
  scope.name = [&dims](std::string_view name) -> std::optional<std::int64_t> {
    const auto found = dims.find(std::string(name));
    return found == dims.end() ? std::nullopt : std::optional(found->second);
  };
  return scope;
}

namespace {

// What the file says of how a tensor lies in memory: a number that is not negative.
std::int64_t evaluated(const TensorSpec& tensor, const char* what, const Expression& expression,
                       const Scope& scope) {
  std::int64_t value = 0;
  try {
    value = expression.evaluate(scope);
  } catch (const ExpressionError& error) {
    throw Error(
        std::string(what) + " of `" + tensor.name + "`: `" + expression.text() + "`: " + error.message,
        kExitUsage);
  }
  if (value < 0)
    throw Error(std::string(what) + " of `" + tensor.name + "`: `" + expression.text() + "` is " +
                    std::to_string(value),
                kExitUsage);
  return value;
}

}  // namespace

std::vector<std::int64_t> shape_at(const TensorSpec& tensor, const Dims& dims) {
  const Scope scope = dims_scope(dims);
  std::vector<std::int64_t> shape;
  std::int64_t bytes = static_cast<std::int64_t>(size_of(tensor.dtype));
  for (const Expression& expression : tensor.shape) {
    shape.push_back(evaluated(tensor, "shape", expression, scope));
    if (__builtin_mul_overflow(bytes, shape.back(), &bytes))
      throw Error("shape of `" + tensor.name + "`: its bytes do not fit 64 bits", kExitUsage);
  }
  return shape;
}

std::vector<std::int64_t> strides_at(const TensorSpec& tensor, const Dims& dims) {
  const Scope scope = dims_scope(dims);
  std::vector<std::int64_t> strides;
  for (const Expression& expression : tensor.strides)
    strides.push_back(evaluated(tensor, "strides", expression, scope));
  if (!strides.empty()) return strides;
  const std::vector<std::int64_t> shape = shape_at(tensor, dims);
  strides.resize(shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0; stride *= shape[i]) strides[i] = stride;
  return strides;
}

std::vector<std::int64_t> memory_shape_at(const TensorSpec& tensor, const Dims& dims) {
  std::vector<std::int64_t> shape = shape_at(tensor, dims);
  if (tensor.strides.empty()) return shape;
  const std::vector<std::int64_t> strides = strides_at(tensor, dims);
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return {0};
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(elements, reach, &elements))
      throw Error("strides of `" + tensor.name + "`: its bytes do not fit 64 bits", kExitUsage);
  }
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(elements, static_cast<std::int64_t>(size_of(tensor.dtype)), &bytes))
    throw Error("strides of `" + tensor.name + "`: its bytes do not fit 64 bits", kExitUsage);
  return {elements};
}

Task on_device(Task task, std::string_view device_kind) {
  if (device_kind == "cpu") return task;
  task.digest = task.gpu_digest;
  if (task.gpu_timing.empty()) return task;
  const auto holds = [](const std::vector<Dims>& shapes, const Dims& dims) {
    return std::find(shapes.begin(), shapes.end(), dims) != shapes.end();
  };
  for (const Dims& dims : task.timing)
    if (!holds(task.gpu_timing, dims) && !holds(task.hidden, dims)) task.hidden.push_back(dims);
  task.timing = task.gpu_timing;
  return task;
}

Task as_module(Task task) {
  if (task.module.empty()) return task;
  const auto first = std::stable_partition(task.inputs.begin(), task.inputs.end(),
                                           [](const TensorSpec& input) { return input.role == Role::kData; });
  task.state.assign(std::make_move_iterator(first), std::make_move_iterator(task.inputs.end()));
  task.inputs.erase(first, task.inputs.end());
  for (std::string* digest : {&task.digest, &task.gpu_digest}) *digest = sha256_hex(*digest + " as a module");
  return task;
}

std::string math_of(const Task& task, const std::string& asked) {
  return task.math == "torch_default" || asked == "torch_default" ? "torch_default" : "strict";
}

Task under_math(Task task, const std::string& asked) {
  task.math = math_of(task, asked);
  return task;
}

std::uint64_t misalignment_at(const TensorSpec& tensor, const Dims& dims) {
  if (!tensor.offset) return 0;
  const auto elements =
      static_cast<std::uint64_t>(evaluated(tensor, "offset", *tensor.offset, dims_scope(dims)));
  return elements % 256 * size_of(tensor.dtype) % 256;
}

std::string to_string(const ValueSpec& values) {
  std::string inside;
  const auto add = [&](const std::string& text) { inside += (inside.empty() ? "" : ", ") + text; };
  for (const Expression& argument : values.arguments) add(trim(argument.text()));
  for (const ValueSpec& part : values.parts) add(to_string(part));
  return inside.empty() ? values.kind : values.kind + "(" + inside + ")";
}

double value_argument(const ValueSpec& values, std::size_t index, const Dims& dims) {
  const Expression& expression = values.arguments.at(index);
  try {
    return expression.evaluate_real(dims_scope(dims));
  } catch (const ExpressionError& error) {
    throw Error("values `" + values.kind + "`: `" + expression.text() + "`: " + error.message, kExitUsage);
  }
}

std::optional<EvenChoice> even_choice(const ValueSpec& values, const Dims& dims) {
  std::vector<double> numbers;
  for (std::size_t i = 0; i < values.arguments.size(); ++i)
    numbers.push_back(value_argument(values, i, dims));
  if (numbers.empty()) return std::nullopt;
  EvenChoice even{static_cast<float>(numbers[0]), 0, numbers.size()};
  if (numbers.size() > 1) even.step = static_cast<float>(numbers[1] - numbers[0]);
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    const float offset = even.step * static_cast<float>(k);
    const double number = even.base + offset;
    if (number != numbers[k] || std::signbit(number) != std::signbit(numbers[k])) return std::nullopt;
  }
  return even;
}

}  // namespace warpsmith::task
