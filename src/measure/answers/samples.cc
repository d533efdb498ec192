#include "samples.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "host_inputs.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/random.h"

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

// The smallest shape with two samples or more that is not large.
std::optional<task::Dims> small_batch(const task::Task& task, const std::string& batch) {
  for (const CheckCase& check : check_cases(task, 1))
    if (check.distribution < 0 && check.dims.at(batch) > 1)
      return is_large(task, check.dims) ? std::nullopt : std::optional(check.dims);
  return std::nullopt;
}

// Of one answer in float64: its rounding apart.
bool is_same(const OutputValues& sample, const OutputValues& all, std::size_t first) {
  constexpr double kRounding = 1e-11;
  double scale = 0;
  for (const double value : all.reals)
    if (std::isfinite(value)) scale = std::max(scale, std::fabs(value));
  for (std::size_t i = 0; i < sample.reals.size(); ++i) {
    const double alone = sample.reals[i], together = all.reals.at(first + i);
    if (std::isnan(alone) && std::isnan(together)) continue;
    if (alone != together && !(std::fabs(alone - together) <= kRounding * scale)) return false;
  }
  return std::equal(sample.integers.begin(), sample.integers.end(),
                    all.integers.begin() + static_cast<std::ptrdiff_t>(all.integers.empty() ? 0 : first));
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

bool answers_each_sample(const Reference& reference, const ValueSource& source, std::uint64_t seed,
                         const std::string& batch) {
  const task::Task& task = reference.task();
  const std::optional<task::Dims> dims = small_batch(task, batch);
  if (!dims) return false;
  HostInputs inputs(task, *dims);
  const auto draw = [&] {  // a reference that works in place changes them
    fill_inputs(source, reference, *dims, -1, seed, random_key({name_key("samples")}), inputs.spans());
  };
  try {
    draw();
    const std::vector<OutputValues> all = reference.run_oracle(*dims, inputs.read_only());
    for (std::int64_t sample = 0; sample < dims->at(batch); ++sample) {
      draw();
      const std::vector<OutputValues> alone = reference.run_oracle(
          with_samples(*dims, batch, 1), part_of(task.inputs, *dims, batch, inputs.read_only(), sample, 1));
      for (std::size_t i = 0; i < all.size(); ++i) {
        const std::size_t size = std::max(alone[i].reals.size(), alone[i].integers.size());
        if (!is_same(alone[i], all[i], static_cast<std::size_t>(sample) * size)) return false;
      }
    }
  } catch (const Error&) {
    return false;  // of one sample, for with all of them it runs
  }
  return true;
}

}  // namespace warpsmith::measure
