#include "call_check.h"

#include <utility>

#include "warpsmith/measure/compare.h"
#include "warpsmith/measure/oracle.h"

namespace warpsmith::measure {

namespace {

constexpr double kCopyTimeout = 30;  // seconds

}  // namespace

GpuCallCheck::GpuCallCheck(const GpuHarness& harness, const task::Task& task, const Reference& reference,
                           const task::Dims& dims, std::vector<double> bounds)
    : harness_(harness),
      task_(task),
      dims_(dims),
      bounds_(std::move(bounds)),
      inputs_(task, dims),
      fresh_inputs_(harness, input_specs(task, dims), 1),
      right_(reference.bind(dims, spans_of(fresh_inputs_, 0, 1))),
      changed_(sizeof(int)) {
  for (double& bound : bounds_) bound *= kBoundOfTimed;
  for (const task::TensorSpec& output : task.outputs) outputs_.emplace_back(tensor_bytes(output, dims));
}

Ran GpuCallCheck::look(std::uint64_t seed, std::span<const device::GpuAddress> operands) {
  std::vector<std::span<const std::byte>> got;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    device::copy(outputs_[i].address(), operands[task_.inputs.size() + i], outputs_[i].bytes());
    got.push_back(device_span(outputs_[i].address(), outputs_[i].bytes()));
  }
  inputs_.add(seed, fresh_inputs_, 0);
  inputs_.fill(harness_);
  int* changed = changed_.as<int>();
  *changed = 0;
  for (std::size_t i = 0; i < task_.inputs.size(); ++i)
    harness_.compare(operands[i], fresh_inputs_.address(0, i), fresh_inputs_.specs()[i].bytes,
                     static_cast<int>(i), changed);
  harness_.gpu().settle(kCopyTimeout);
  if (*changed > 0)
    return {
        Verdict::kInputModified,
        "writes to input `" + task_.inputs[static_cast<std::size_t>(*changed - 1)].name + "` in a timed call",
        0};
  right_.run(0, 1);
  Ran ran;
  const std::vector<Comparison> compared = right_.compare(0, got, bounds_);
  for (std::size_t i = 0; i < compared.size() && ran.verdict == Verdict::kOk; ++i)
    if (!compared[i].agrees)
      ran = {Verdict::kWrongOutput,
             "in a timed call: " +
                 describe(compared[i], task_.outputs[i].name, task_.outputs[i].dtype,
                          task::shape_at(task_.outputs[i], dims_)) +
                 " (shape " + describe(dims_) + ")",
             0};
  right_.drop_outputs();
  return ran;
}

}  // namespace warpsmith::measure
