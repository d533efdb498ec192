#include "call_check.h"

#include <span>
#include <utility>

#include "warpsmith/measure/oracle.h"

namespace warpsmith::measure {

Ran wrong_in_a_timed_call(const std::vector<Comparison>& compared, const task::Task& task,
                          const task::Dims& dims) {
  for (std::size_t i = 0; i < compared.size(); ++i) {
    const task::TensorSpec& output = task.outputs[i];
    if (!compared[i].agrees)
      return {Verdict::kWrongOutput,
              "in a timed call: " +
                  describe(compared[i], output.name, output.dtype, task::shape_at(output, dims)) +
                  " (shape " + describe(dims) + ")",
              0};
  }
  return {};
}

GpuCallCheck::GpuCallCheck(const GpuHarness& harness, const task::Task& task, const Reference& reference,
                           const task::Dims& dims, std::vector<double> bounds)
    : task_(task),
      dims_(dims),
      bounds_(std::move(bounds)),
      fresh_(harness, reference, dims),
      right_(reference.bind(dims, fresh_.sets())) {
  for (double& bound : bounds_) bound *= kBoundOfTimed;
  for (const task::TensorSpec& output : task.outputs) outputs_.emplace_back(tensor_bytes(output, dims));
}

Ran GpuCallCheck::look(std::uint64_t seed, const GpuOperands& operands, int set) {
  std::vector<std::span<const std::byte>> got;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    device::copy(outputs_[i].address(), operands.address(set, task_.inputs.size() + i), outputs_[i].bytes());
    got.push_back(device_span(outputs_[i].address(), outputs_[i].bytes()));
  }
  fresh_.draw(seed);
  if (const auto changed = fresh_.changed({operand_spans(operands, set, 0, task_.inputs.size())}))
    return {Verdict::kInputModified, "writes to input `" + task_.inputs[*changed].name + "` in a timed call",
            0};
  right_.run(0, 1);
  const std::vector<Comparison> compared = right_.compare(0, got, bounds_);
  right_.drop_outputs();
  return wrong_in_a_timed_call(compared, task_, dims_);
}

}  // namespace warpsmith::measure
