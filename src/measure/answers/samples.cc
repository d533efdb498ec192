#include "samples.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "warpsmith/base/error.h"
#include "warpsmith/measure/compare.h"

namespace warpsmith::measure {

namespace {

// How often a shape has a dim behind its first size, or in a larger expression.
bool is_elsewhere(const task::TensorSpec& tensor, const std::string& dim) {
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (i == 0 && tensor.shape[i].text() == dim) continue;
    const std::vector<std::string> names = tensor.shape[i].names();
    if (std::find(names.begin(), names.end(), dim) != names.end()) return true;
  }
  return false;
}

bool leads(const task::TensorSpec& tensor, const std::string& dim) {
  return !tensor.shape.empty() && tensor.shape.front().text() == dim;
}

// What is cast up to float64 cannot be written to by the reference: the next piece has it as it was.
bool becomes_a_copy(const task::TensorSpec& input) {
  return task::is_floating(input.dtype) && input.dtype != task::Dtype::kFloat64;
}

}  // namespace

std::string batch_dim(const task::Task& task) {
  if (task.outputs.empty() || task.outputs.front().shape.empty()) return "";
  const std::string dim = task.outputs.front().shape.front().text();
  if (std::find(task.dims.begin(), task.dims.end(), dim) == task.dims.end()) return "";
  bool some_input = false;
  for (const task::TensorSpec& input : task.inputs) {
    if (is_elsewhere(input, dim) || !becomes_a_copy(input) || (leads(input, dim) && !input.strides.empty()))
      return "";
    some_input |= leads(input, dim);
  }
  for (const task::TensorSpec& output : task.outputs)
    if (!leads(output, dim) || is_elsewhere(output, dim)) return "";
  return some_input ? dim : "";
}

task::Dims with_samples(task::Dims dims, const std::string& batch, std::int64_t samples) {
  dims.at(batch) = samples;
  return dims;
}

std::optional<task::Dims> few_samples(const task::Task& task, const std::string& batch,
                                      std::uint64_t most_bytes) {
  for (const CheckCase& check : check_cases(task, 1)) {
    if (check.distribution >= 0 || check.dims.at(batch) < 2) continue;
    const std::uint64_t bytes = input_bytes(task, check.dims) + output_bytes(task, check.dims);
    return bytes <= most_bytes ? std::optional(check.dims) : std::nullopt;
  }
  return std::nullopt;
}

bool answers_each_sample(const Reference& reference, const task::Dims& dims, const std::string& batch,
                         const std::vector<std::span<std::byte>>& call) {
  constexpr double kRounding = 1e-11;  // of two ways to one answer in float64, by its scale
  Reference::Calls all = reference.bind_oracle(dims, {call});
  all.run(0, 1);
  std::vector<double> bounds;
  for (const auto& [least, most] : all.ranges(0)) {
    const double scale = std::max(std::fabs(least), std::fabs(most));
    bounds.push_back(std::isfinite(scale) ? kRounding * scale : 0);
  }
  const task::Dims one = with_samples(dims, batch, 1);
  try {
    for (std::int64_t sample = 0; sample < dims.at(batch); ++sample) {
      Reference::Calls alone =
          reference.bind_oracle(one, {part_of(reference.task().inputs, dims, batch, call, sample, 1)});
      alone.run(0, 1);
      for (const Comparison& apart : all.part(one, sample).compare(0, alone, 0, bounds))
        if (!apart.agrees) return false;
    }
  } catch (const Error&) {
    return false;  // of one sample, for with all of them it runs
  }
  return true;
}

}  // namespace warpsmith::measure
