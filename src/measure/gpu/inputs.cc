#include "inputs.h"

#include <algorithm>
#include <utility>

#include "warpsmith/measure/oracle.h"
#include "warpsmith/measure/values.h"

namespace warpsmith::measure {

namespace {

constexpr double kTimeout = 60;  // seconds: of work of the harness, and of an untimed call before it
constexpr std::uint64_t kAlignment = 256;

}  // namespace

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

GpuInputs::GpuInputs(const Reference& reference, const task::Dims& dims)
    : reference_(reference), dims_(dims) {
  for (const task::TensorSpec& input : reference.task().inputs)
    shapes_.push_back(task::memory_shape_at(input, dims));
}

void GpuInputs::add(std::uint64_t seed, const GpuOperands& operands, int set) {
  add(seed, 0, -1, operand_spans(operands, set, 0, shapes_.size()));
}

void GpuInputs::add(std::uint64_t seed, std::uint64_t use, int distribution,
                    const std::vector<std::span<std::byte>>& inputs) {
  const task::Task& task = reference_.task();
  for (std::size_t i = 0; i < task.inputs.size(); ++i)
    fills_.push_back({&values_of(task, i, distribution), task.inputs[i].dtype, &shapes_[i],
                      input_key(seed, task, dims_, task.inputs[i].name, use), region_of(inputs.at(i))});
  if (!task.prepared.empty()) calls_.push_back(inputs);
}

bool GpuInputs::is_prepared(std::size_t input) const {
  const std::vector<std::size_t>& prepared = reference_.task().prepared;
  return std::find(prepared.begin(), prepared.end(), input) != prepared.end();
}

// Lists are emptied first, here and below: where it throws, these values must not come with the next ones.
void GpuInputs::fill_ahead(const GpuHarness& harness) {
  const std::vector<Call> calls = std::exchange(calls_, {});
  std::vector<GpuFill> fills = std::exchange(fills_, {}), drawn;
  copies_.clear();
  if (!calls.empty()) {
    // torch may ask the driver for memory, which may wait for all that runs: so nothing else may run for
    // long.
    harness.gpu().settle(kTimeout);
    const auto round_up = [](std::uint64_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; };
    // The fills of a call lie one after the other, as its inputs do.
    const std::size_t inputs = shapes_.size();
    std::uint64_t bytes = 0;
    for (const std::size_t input : reference_.task().prepared) bytes += round_up(fills[input].to.bytes);
    bytes *= calls.size();
    if (ahead_.bytes() < bytes) {
      ahead_ = {};  // first: both at once may be much memory
      ahead_ = device::GpuMemory(bytes);
    }
    std::vector<Call> moved = calls;
    device::GpuAddress at = ahead_.address();
    for (std::size_t i = 0; i < fills.size(); ++i) {
      if (!is_prepared(i % inputs)) {
        fills_.push_back(fills[i]);
        continue;
      }
      copies_.push_back({fills[i].to, at});
      fills[i].to.address = at;
      moved[i / inputs][i % inputs] = device_span(at, fills[i].to.bytes);
      drawn.push_back(fills[i]);
      at += round_up(fills[i].to.bytes);
    }
    harness.kernels().fill(drawn, dims_);
    for (const Call& call : moved) reference_.prepare(dims_, call, Place::kGpu);
    harness.gpu().settle(kTimeout);
    release_memory();
  } else {
    fills_ = std::move(fills);
  }
  harness.kernels().fill_drawn_by_host(fills_, dims_);
}

void GpuInputs::fill(const GpuHarness& harness) {
  const std::vector<Call> calls = std::exchange(calls_, {});
  const std::vector<GpuFill> fills = std::exchange(fills_, {});
  const std::vector<Copy> copies = std::exchange(copies_, {});
  if (!calls.empty()) harness.gpu().settle(kTimeout);  // as ahead: a candidate's call may never end
  harness.kernels().fill(fills, dims_);
  for (const Copy& copy : copies) device::copy(copy.to.address, copy.from, copy.to.bytes);
  for (const Call& call : calls) reference_.prepare(dims_, call, Place::kGpu);
}

void GpuInputs::release_memory() const {
  if (!reference_.task().prepared.empty()) reference_.release_memory();
}

GpuFreshInputs::GpuFreshInputs(const GpuHarness& harness, const Reference& reference, const task::Dims& dims)
    : harness_(harness),
      values_(reference, dims),
      operands_(harness, input_specs(reference.task(), dims), 1),
      sets_(spans_of(operands_, 0, 1)),
      flag_(sizeof(int)) {}

void GpuFreshInputs::draw(std::uint64_t seed, std::uint64_t use, int distribution) {
  values_.add(seed, use, distribution, sets_.front());
  values_.fill(harness_);
}

std::optional<std::size_t> GpuFreshInputs::changed(
    const std::vector<std::vector<std::span<std::byte>>>& sets) {
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
