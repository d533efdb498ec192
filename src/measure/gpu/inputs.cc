#include "inputs.h"

#include <utility>

#include "warpsmith/measure/oracle.h"
#include "warpsmith/measure/values.h"

namespace warpsmith::measure {

std::span<std::byte> device_span(device::GpuAddress address, std::uint64_t bytes) {
  return {reinterpret_cast<std::byte*>(address), static_cast<std::size_t>(bytes)};
}

std::vector<GpuOperandSpec> input_specs(const task::Task& task, const task::Dims& dims) {
  std::vector<GpuOperandSpec> specs;
  for (const task::TensorSpec& input : task.inputs)
    specs.push_back({input.name, tensor_bytes(input, dims), task::misalignment_at(input, dims)});
  return specs;
}

GpuRegion region_of(std::span<const std::byte> span) {
  return {reinterpret_cast<device::GpuAddress>(span.data()), span.size()};
}

std::vector<std::span<std::byte>> operand_spans(const GpuOperands& operands, int set, std::size_t first,
                                                std::size_t count) {
  std::vector<std::span<std::byte>> spans;
  for (std::size_t i = first; i < first + count; ++i)
    spans.push_back(device_span(operands.address(set, i), operands.specs()[i].bytes));
  return spans;
}

std::vector<std::vector<std::span<std::byte>>> spans_of(const GpuOperands& operands, int first, int count) {
  std::vector<std::vector<std::span<std::byte>>> sets;
  for (int set = first; set < first + count; ++set)
    sets.push_back(operand_spans(operands, set, 0, operands.specs().size()));
  return sets;
}

GpuInputs::GpuInputs(const task::Task& task, const task::Dims& dims) : task_(task), dims_(dims) {
  for (const task::TensorSpec& input : task.inputs) shapes_.push_back(task::memory_shape_at(input, dims));
}

void GpuInputs::add(std::uint64_t seed, const GpuOperands& operands, int set) {
  add(seed, 0, -1, operand_spans(operands, set, 0, task_.inputs.size()));
}

void GpuInputs::add(std::uint64_t seed, std::uint64_t use, int distribution,
                    const std::vector<std::span<std::byte>>& inputs) {
  for (std::size_t i = 0; i < task_.inputs.size(); ++i)
    fills_.push_back({&values_of(task_, i, distribution), task_.inputs[i].dtype, &shapes_[i],
                      input_key(seed, task_, dims_, task_.inputs[i].name, use), region_of(inputs.at(i))});
}

void GpuInputs::fill(const GpuHarness& harness) {
  // Emptied first: where it throws, these values must not come with the next ones.
  const std::vector<GpuFill> fills = std::exchange(fills_, {});
  harness.kernels().fill(fills, dims_);
}

GpuFreshInputs::GpuFreshInputs(const GpuHarness& harness, const task::Task& task, const task::Dims& dims)
    : harness_(harness),
      values_(task, dims),
      operands_(harness, input_specs(task, dims), 1),
      sets_(spans_of(operands_, 0, 1)),
      flag_(sizeof(int)) {}

void GpuFreshInputs::draw(std::uint64_t seed, std::uint64_t use, int distribution) {
  values_.add(seed, use, distribution, sets_.front());
  values_.fill(harness_);
}

std::optional<std::size_t> GpuFreshInputs::changed(
    const std::vector<std::vector<std::span<std::byte>>>& sets) {
  constexpr double kTimeout = 60;  // seconds: of work of the harness
  int* changed = flag_.as<int>();
  *changed = 0;
  for (const auto& inputs : sets)
    for (std::size_t i = 0; i < inputs.size(); ++i)
      harness_.kernels().compare(region_of(inputs[i]).address, operands_.address(0, i), inputs[i].size(),
                                 static_cast<int>(i), changed);
  harness_.gpu().settle(kTimeout);
  return *changed > 0 ? std::optional(static_cast<std::size_t>(*changed - 1)) : std::nullopt;
}

}  // namespace warpsmith::measure
