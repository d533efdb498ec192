#include "warpsmith/measure/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "host_inputs.h"
#include "warpsmith/base/random.h"
#include "warpsmith/measure/compare.h"

namespace warpsmith::measure {

namespace {

// The least and the largest element; NaN where one is not finite.
std::pair<double, double> range_of(const OutputValues& values) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  double least = std::numeric_limits<double>::infinity(), most = -least;
  const auto add = [&](double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  };
  for (const double value : values.reals) {
    if (!std::isfinite(value)) return {kNone, kNone};
    add(value);
  }
  for (const std::int64_t value : values.integers) add(static_cast<double>(value));
  return {least, most};
}

}  // namespace

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

bool is_large(const task::Task& task, const task::Dims& dims) {
  constexpr std::uint64_t kLarge = 4 << 20;
  return input_bytes(task, dims) + output_bytes(task, dims) > kLarge;
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

const task::ValueSpec& values_of(const task::Task& task, std::size_t input, int distribution) {
  if (distribution >= 0) {
    const auto& others = task.distributions.at(static_cast<std::size_t>(distribution));
    if (const auto it = others.find(task.inputs.at(input).name); it != others.end()) return it->second;
  }
  return task.inputs.at(input).values;
}

void fill_inputs(const ValueSource& source, const Reference& reference, const task::Dims& dims,
                 int distribution, std::uint64_t seed, std::uint64_t use,
                 const std::vector<std::span<std::byte>>& inputs) {
  const task::Task& task = reference.task();
  for (std::size_t i = 0; i < task.inputs.size(); ++i) {
    const task::TensorSpec& input = task.inputs[i];
    source.fill(values_of(task, i, distribution), input.dtype, task::memory_shape_at(input, dims), dims,
                input_key(seed, task, dims, input.name, use), inputs.at(i));
  }
  reference.prepare(dims, inputs);
}

Oracle::Oracle(const task::Task& task, const Reference& reference, const ValueSource& source,
               std::uint64_t seed, std::uint64_t budget_bytes)
    : task_(task), reference_(reference), source_(source), seed_(seed), budget_bytes_(budget_bytes) {}

std::uint64_t Oracle::use_of(const CheckCase& check) {
  return random_key({name_key("check"), static_cast<std::uint64_t>(check.distribution + 1),
                     static_cast<std::uint64_t>(check.seed)});
}

void Oracle::fill_host(const CheckCase& check, const std::vector<std::span<std::byte>>& inputs) const {
  fill_inputs(source_, reference_, check.dims, check.distribution, seed_, use_of(check), inputs);
}

void Oracle::fill(const CheckCase& check, const std::vector<std::span<std::byte>>& inputs) const {
  fill_host(check, inputs);
}

std::optional<std::size_t> Oracle::changed_input(const CheckCase&, const InputSets&) { return std::nullopt; }

Asked Oracle::asked(const CheckCase& check) {
  const auto it = asked_.find(key_of(check));
  if (it != asked_.end()) return it->second;
  Asked asked = in_a_type_that_works([&] { return ask(check); });  // it may throw, and then nothing is kept
  note_bounds(check, asked);
  return asked_.emplace(key_of(check), std::move(asked)).first->second;
}

bool Oracle::widen(const CheckCase& check) {
  constexpr std::int64_t kEnough = 1 << 16, kMost = 127;  // answers; seeds
  constexpr std::uint64_t kMostBytes = 256 << 20;         // of the inputs of all seeds
  constexpr int kFirst = 1 << 20;                         // no check has such a seed
  const bool is_computed = std::any_of(task_.outputs.begin(), task_.outputs.end(),
                                       [](const auto& output) { return task::is_floating(output.dtype); });
  if (task_.tolerance || !is_computed) return false;  // bound_of() has one answer for all seeds and shapes
  std::int64_t answers = 0;
  for (const task::TensorSpec& output : task_.outputs) {
    std::int64_t elements = 1;
    for (const std::int64_t size : task::shape_at(output, check.dims)) elements *= size;
    answers += elements;
  }
  std::vector<double> bounds = asked(check).bounds;
  const std::uint64_t bytes = std::max<std::uint64_t>(1, input_bytes(task_, check.dims));
  const std::int64_t seeds = std::min(
      {kMost, kEnough / std::max<std::int64_t>(1, answers), static_cast<std::int64_t>(kMostBytes / bytes)});
  for (std::int64_t i = 0; i < seeds; ++i) {
    CheckCase more = check;
    more.seed = kFirst + static_cast<int>(i);
    const Asked other = asked(more);
    for (std::size_t output = 0; output < bounds.size() && other.decidable; ++output)
      bounds[output] = std::max(bounds[output], other.bounds[output]);
  }
  std::vector<double>& kept = asked_.at(key_of(check)).bounds;
  const bool wider = bounds != kept;
  kept = std::move(bounds);
  return wider;
}

Asked Oracle::ask(const CheckCase& check) { return *expected(check); }

std::vector<Compared> Oracle::compare(const CheckCase& check, const OutputSets& sets) {
  const std::shared_ptr<const Expected> expected = this->expected(check);
  const std::vector<double> bounds = asked(check).bounds;
  std::vector<Compared> all(expected->outputs.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const OutputValues& right = expected->outputs[i];
    const double bound = bounds[i];
    for (const auto& outputs : sets)
      all[i].with_right.push_back(measure::compare(outputs.at(i), right, bound));
    if (sets.size() < 2) continue;
    const std::span<const std::byte> a = sets[0][i], b = sets[1][i];
    all[i].agree = std::memcmp(a.data(), b.data(), a.size()) == 0 ||
                   measure::compare(b, decode(a, right.dtype, right.shape), bound).agrees;
  }
  return all;
}

std::uint64_t Oracle::use_of_others() { return random_key({name_key("others")}); }

bool Oracle::may_be(std::size_t input, std::size_t output, const task::Dims& dims) const {
  const task::TensorSpec &in = task_.inputs.at(input), &out = task_.outputs.at(output);
  return in.strides.empty() && in.dtype == out.dtype && tensor_bytes(in, dims) == tensor_bytes(out, dims);
}

std::vector<AnswerFacts> Oracle::facts(const CheckCase& check) {
  const std::shared_ptr<const Expected> expected = this->expected(check);
  HostInputs inputs(task_, check.dims);
  fill_host(check, inputs.spans());
  std::vector<AnswerFacts> all;
  for (std::size_t i = 0; i < expected->outputs.size(); ++i) {
    const OutputValues& right = expected->outputs[i];
    AnswerFacts facts{expected->bounds[i], 0, 0, {}};
    std::tie(facts.least, facts.most) = range_of(right);
    for (std::size_t j = 0; j < task_.inputs.size(); ++j)
      facts.is_input.push_back(may_be(j, i, check.dims) &&
                               measure::compare(inputs.bytes(j), right, facts.bound).agrees);
    all.push_back(std::move(facts));
  }
  return all;
}

std::optional<bool> Oracle::needs(const CheckCase& check, std::size_t input) {
  HostInputs inputs(task_, check.dims), others(task_, check.dims);
  fill_host(check, inputs.spans());
  fill_inputs(source_, reference_, check.dims, check.distribution, seed_, use_of_others(), others.spans());
  if (!inputs.take(input, others)) return std::nullopt;
  const std::shared_ptr<const Expected> expected = this->expected(check);
  const std::vector<OutputValues> outputs = reference_.run_oracle(check.dims, inputs.read_only());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (!measure::compare(outputs[i], expected->outputs[i], expected->bounds[i]).agrees) return true;
  return false;
}

void Oracle::note_bounds(const CheckCase& check, const Asked& asked) {
  if (!asked.decidable || check.distribution >= 0) return;
  std::vector<double>& bounds = bounds_[check.dims];
  bounds.resize(asked.bounds.size(), 0.0);
  for (std::size_t i = 0; i < bounds.size(); ++i) bounds[i] = std::max(bounds[i], asked.bounds[i]);
}

std::shared_ptr<const Expected> Oracle::expected(const CheckCase& check) {
  if (const auto it = kept_.find(key_of(check)); it != kept_.end()) return it->second;
  std::shared_ptr<const Expected> made = in_a_type_that_works([&] { return make(check); });
  note_bounds(check, *made);
  std::uint64_t bytes = 0;
  for (const OutputValues& output : made->outputs) bytes += output.memory_bytes();
  if (used_bytes_ + bytes <= budget_bytes_) {
    used_bytes_ += bytes;
    kept_.emplace(key_of(check), made);
  }
  return made;
}

std::vector<double> Oracle::bounds_at(const task::Dims& dims) const {
  if (const auto it = bounds_.find(dims); it != bounds_.end()) return it->second;
  std::vector<double> bounds;  // of a shape that was not asked: what the task says
  for (std::size_t i = 0; i < task_.outputs.size(); ++i) bounds.push_back(bound_of(i, 0));
  return bounds;
}

std::shared_ptr<const Expected> Oracle::make(const CheckCase& check) const {
  HostInputs memory(task_, check.dims);
  const std::vector<std::span<std::byte>> inputs = memory.spans();
  const std::vector<std::span<const std::byte>> read_only = memory.read_only();
  fill_host(check, inputs);
  auto expected = std::make_shared<Expected>();
  expected->outputs = reference_.run_oracle(check.dims, read_only);
  fill_host(check, inputs);  // a reference that works in place has changed them
  const std::vector<OutputValues> own = reference_.run_near(check.dims, read_only);
  std::vector<OutputValues> rounded;
  if (reference_.rounds_to_tf32()) {
    fill_host(check, inputs);
    rounded = reference_.run_rounded(check.dims, read_only);
  }
  reference_.release_memory();  // no candidate finds the answer in memory that nobody holds any more
  for (std::size_t i = 0; i < own.size(); ++i) {
    expected->outputs[i].signed_zeros = task_.outputs[i].signed_zeros;
    double bound = default_bound(own[i], expected->outputs[i]);
    if (!rounded.empty())
      bound = std::max(bound, tf32_bound(measure::compare(rounded[i], expected->outputs[i],
                                                          std::numeric_limits<double>::max())
                                             .max_error));
    expected->bounds.push_back(bound_of(i, bound));
  }
  expected->undecidable_because = misses(own, expected->outputs);
  expected->decidable = expected->undecidable_because.empty();
  return expected;
}

double Oracle::bound_of(std::size_t output, double default_bound) const {
  return task::is_floating(task_.outputs.at(output).dtype) ? task_.tolerance.value_or(default_bound) : 0;
}

std::string Oracle::misses(const std::vector<OutputValues>& own,
                           const std::vector<OutputValues>& right) const {
  for (std::size_t i = 0; i < own.size(); ++i) {
    // Any finite distance is within the default bound, which is ten times the largest of them.
    const Comparison comparison = measure::compare(own[i], right[i], std::numeric_limits<double>::max());
    if (!comparison.agrees)
      return std::string("the reference itself misses its ") +
             (reference_.without_float64().empty() ? "float64 answer: "
                                                   : "answer where inputs are one rounding away: ") +
             measure::describe(comparison, task_.outputs[i].name, right[i]);
  }
  return "";
}

}  // namespace warpsmith::measure
