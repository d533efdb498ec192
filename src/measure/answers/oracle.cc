#include "warpsmith/measure/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "warpsmith/base/random.h"
#include "warpsmith/measure/compare.h"

namespace warpsmith::measure {

std::uint64_t tensor_bytes(const task::TensorSpec& tensor, const task::Dims& dims) {
  std::uint64_t bytes = task::size_of(tensor.dtype);
  for (const std::int64_t size : task::memory_shape_at(tensor, dims))
    bytes *= static_cast<std::uint64_t>(size);
  return bytes;
}

std::uint64_t input_bytes(const task::Task& task, const task::Dims& dims) {
  std::uint64_t bytes = 0;
  for (const task::TensorSpec& input : task.inputs) bytes += tensor_bytes(input, dims);
  return bytes;
}

std::uint64_t output_bytes(const task::Task& task, const task::Dims& dims) {
  std::uint64_t bytes = 0;
  for (const task::TensorSpec& output : task.outputs) bytes += tensor_bytes(output, dims);
  return bytes;
}

std::vector<CheckCase> check_cases(const task::Task& task, int seeds) {
  std::vector<CheckCase> cases;
  const auto add = [&](const task::Dims& dims, bool hidden) {
    for (int seed = 0; seed < seeds; ++seed) cases.push_back({dims, hidden, -1, seed});
    for (std::size_t d = 0; d < task.distributions.size(); ++d)
      cases.push_back({dims, hidden, static_cast<int>(d), 0});
  };
  for (const task::Dims& dims : task.timing) add(dims, false);
  for (const task::Dims& dims : task.hidden) add(dims, true);
  const auto size = [&](const CheckCase& check) {
    return input_bytes(task, check.dims) + output_bytes(task, check.dims);
  };
  std::stable_sort(cases.begin(), cases.end(),
                   [&](const CheckCase& a, const CheckCase& b) { return size(a) < size(b); });
  return cases;
}

std::string describe(const task::Dims& dims) {
  std::string text;
  for (const auto& [name, size] : dims) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, size);
  return text;
}

std::string describe(const std::map<std::string, task::ValueSpec>& distribution) {
  std::string text;
  for (const auto& [input, values] : distribution)
    text += (text.empty() ? "" : ", ") + input + ": " + to_string(values);
  return text;
}

std::string describe(const CheckCase& check, const task::Task& task) {
  std::string text = (check.hidden ? "hidden shape " : "shape ") + describe(check.dims);
  if (check.seed > 0) text += fmt::format(", seed {}", check.seed);
  if (check.distribution >= 0)
    text += fmt::format(", distribution {} ({})", check.distribution + 1,
                        describe(task.distributions.at(static_cast<std::size_t>(check.distribution))));
  return text;
}

void fill_inputs(const ValueSource& source, const task::Task& task, const task::Dims& dims, int distribution,
                 std::uint64_t seed, std::uint64_t use, const std::vector<std::span<std::byte>>& inputs) {
  for (std::size_t i = 0; i < task.inputs.size(); ++i) {
    const task::TensorSpec& input = task.inputs[i];
    const task::ValueSpec* values = &input.values;
    if (distribution >= 0) {
      const auto& others = task.distributions.at(static_cast<std::size_t>(distribution));
      if (const auto it = others.find(input.name); it != others.end()) values = &it->second;
    }
    source.fill(*values, input.dtype, task::memory_shape_at(input, dims), dims,
                input_key(seed, task, dims, input.name, use), inputs.at(i));
  }
}

Oracle::Oracle(const task::Task& task, const Reference& reference, const ValueSource& source,
               std::uint64_t seed, std::uint64_t budget_bytes)
    : task_(task), reference_(reference), source_(source), seed_(seed), budget_bytes_(budget_bytes) {}

void Oracle::fill(const CheckCase& check, const std::vector<std::span<std::byte>>& inputs) const {
  const std::uint64_t use = random_key({name_key("check"), static_cast<std::uint64_t>(check.distribution + 1),
                                        static_cast<std::uint64_t>(check.seed)});
  fill_inputs(source_, task_, check.dims, check.distribution, seed_, use, inputs);
}

std::shared_ptr<const Expected> Oracle::expected(const CheckCase& check) {
  const Key key{check.dims, check.distribution, check.seed};
  if (const auto it = kept_.find(key); it != kept_.end()) return it->second;
  std::shared_ptr<const Expected> made = make(check);
  if (made->decidable && check.distribution < 0) {
    std::vector<double>& bounds = bounds_[check.dims];
    bounds.resize(made->bounds.size(), 0.0);
    for (std::size_t i = 0; i < bounds.size(); ++i) bounds[i] = std::max(bounds[i], made->bounds[i]);
  }
  std::uint64_t bytes = 0;
  for (const OutputValues& output : made->outputs) bytes += output.memory_bytes();
  if (used_bytes_ + bytes <= budget_bytes_) {
    used_bytes_ += bytes;
    kept_.emplace(key, made);
  }
  return made;
}

std::vector<double> Oracle::bounds_at(const task::Dims& dims) const {
  const auto it = bounds_.find(dims);
  return it == bounds_.end() ? std::vector<double>(task_.outputs.size(), 0.0) : it->second;
}

std::shared_ptr<const Expected> Oracle::make(const CheckCase& check) const {
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::span<std::byte>> inputs;
  for (const task::TensorSpec& input : task_.inputs) memory.emplace_back(tensor_bytes(input, check.dims));
  for (std::vector<std::byte>& input : memory) inputs.emplace_back(input);
  fill(check, inputs);
  const std::vector<std::span<const std::byte>> read_only(inputs.begin(), inputs.end());
  auto expected = std::make_shared<Expected>();
  expected->outputs = reference_.run_oracle(check.dims, read_only);
  fill(check, inputs);  // a reference that works in place has changed them
  const std::vector<OutputValues> own = reference_.run(check.dims, read_only);
  reference_.release_memory();  // no candidate finds the answer in memory that nobody holds any more
  for (std::size_t i = 0; i < own.size(); ++i) {
    OutputValues& right = expected->outputs[i];
    right.signed_zeros = task_.outputs[i].signed_zeros;
    const double bound = default_bound(own[i], right);
    const Comparison comparison = compare(own[i], right, bound);
    if (!comparison.agrees && expected->decidable) {
      expected->decidable = false;
      expected->undecidable_because = "the reference itself misses its float64 answer: " +
                                      measure::describe(comparison, task_.outputs[i].name, right);
    }
    const bool exact = !task::is_floating(right.dtype);
    expected->bounds.push_back(exact ? 0.0 : task_.tolerance.value_or(bound));
  }
  return expected;
}

}  // namespace warpsmith::measure
