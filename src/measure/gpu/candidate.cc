#include "candidate.h"

#include <algorithm>

#include "inputs.h"
#include "timing/judge.h"
#include "warpsmith/measure/oracle.h"

namespace warpsmith::measure {

namespace {

constexpr double kCopyTimeout = 30;  // seconds
constexpr std::uint64_t kMostSteps = 100'000;

}  // namespace

GpuLayout::GpuLayout(GpuHarness& harness, const task::Task& task, const task::LaunchPlan& plan,
                     device::GpuProgram& program, const task::Dims& dims, int sets, std::uint64_t room)
    : harness_(harness), dims_(dims), sets_(sets), input_count_(task.inputs.size()) {
  // Its addresses stand for the real ones, which differ by set and are aligned as well.
  task::PlanBindings bindings = task::plan_bindings(task, dims);
  bindings.device = program.plan_device();
  std::map<std::string, task::Dtype> dtypes;
  std::vector<GpuOperandSpec> specs;
  std::vector<std::vector<std::int64_t>> shapes;
  const auto add = [&](const task::TensorSpec& tensor) {
    dtypes[tensor.name] = tensor.dtype;
    specs.push_back({tensor.name, tensor_bytes(tensor, dims), task::misalignment_at(tensor, dims)});
    shapes.push_back(task::shape_at(tensor, dims));
  };
  for (const task::TensorSpec& input : task.inputs) add(input);
  for (const task::TensorSpec& output : task.outputs) add(output);
  task::ConcretePlan concrete;
  try {
    concrete = plan.evaluate(bindings);
  } catch (const task::PlanError& e) {
    outcome_ = {e.out_of_memory ? Verdict::kOutOfMemory : Verdict::kLaunchError,
                "kernel.cu:" + std::to_string(e.line) + ": " + e.message, false};
    return;
  }
  for (const task::ConcreteTemp& temp : concrete.temps) {
    specs.push_back({temp.name, temp.bytes, 0});
    shapes.push_back(temp.shape);
  }
  if (outcome_ = program.prepare(concrete, dtypes); !outcome_.ok()) return;
  std::uint64_t each = 1;
  for (const GpuOperandSpec& spec : specs) each += spec.bytes;
  // Each set has arguments of its own for every step.
  const std::uint64_t most =
      std::min(room / each, kMostSteps / std::max<std::size_t>(1, concrete.steps.size()));
  sets_ = std::max(std::min(sets, 2), static_cast<int>(std::min(static_cast<std::uint64_t>(sets), most)));
  operands_.emplace(harness, std::move(specs), sets_);
  for (int set = 0; set < sets_ && outcome_.ok(); ++set) {
    std::map<std::string, device::GpuProgram::Operand> named;
    for (std::size_t i = 0; i < shapes.size(); ++i)
      named[operands_->specs()[i].name] = {operands_->address(set, i), operands_->specs()[i].bytes,
                                           shapes[i]};
    outcome_ = program.bind(named);
  }
}

void GpuLayout::poison(int first, int count) {
  std::vector<GpuRegion> memory;
  for (int set = first; set < first + count; ++set)
    for (std::size_t i = input_count_; i < operands_->specs().size(); ++i)
      memory.push_back({address(set, i), bytes(i)});
  harness_.kernels().poison(memory);
}

void GpuLayout::add_memory(int set, std::vector<GpuRegion>& memory) const {
  for (std::size_t i = 0; i < operands_->specs().size(); ++i) memory.push_back({address(set, i), bytes(i)});
}

GpuCandidate::GpuCandidate(GpuHarness& harness, const task::Task& task, const task::LaunchPlan& plan,
                           std::span<const std::byte> cubin, device::GpuNames names, double timeout_s)
    : harness_(harness),
      task_(task),
      plan_(plan),
      program_(harness.gpu(), cubin, std::move(names)),
      timeout_s_(timeout_s) {}

Ran GpuCandidate::ran(const device::GpuOutcome& outcome) {
  lost_ = lost_ || outcome.context_lost;
  return {outcome.verdict, outcome.detail, 0};
}

Ran GpuCandidate::prepare(const task::Dims& dims, int sets) {
  layout_.reset();
  layout_.emplace(harness_, task_, plan_, program_, dims, sets);
  return ran(layout_->outcome());
}

std::vector<std::span<std::byte>> GpuCandidate::inputs(int set) {
  return operand_spans(layout_->operands(), set, 0, task_.inputs.size());
}

std::vector<std::span<const std::byte>> GpuCandidate::outputs(int set) {
  const auto spans = operand_spans(layout_->operands(), set, task_.inputs.size(), task_.outputs.size());
  return {spans.begin(), spans.end()};
}

void GpuCandidate::poison(int sets) { layout_->poison(0, sets); }

Ran GpuCandidate::run(int sets) {
  try {
    return run_sets(sets);
  } catch (const device::GpuError& e) {
    if (!e.outcome().context_lost) throw;
    return ran(e.outcome());
  }
}

Ran GpuCandidate::run_sets(int sets) {
  harness_.gpu().settle(kCopyTimeout);  // values and poison are no part of the candidate's time
  const double begin = seconds_now();
  device::GpuOutcome outcome;
  for (int set = 0; set < sets && outcome.ok(); ++set) {
    // What an earlier kernel has left in shared memory, also another candidate's, is not there for this one.
    harness_.kernels().scrub_shared_memory();
    program_.restore_variables();
    outcome = program_.enqueue(set);
  }
  if (outcome.ok()) outcome = harness_.gpu().wait(timeout_s_ * sets);
  harness_.clock().add_timed((seconds_now() - begin) * 1e9);
  if (!outcome.ok()) return ran(outcome);
  layout_->operands().look_at_canaries();
  if (outcome = harness_.gpu().wait(kCopyTimeout); !outcome.ok()) return ran(outcome);
  if (const std::optional<std::string> problem = layout_->operands().problem())
    return {Verdict::kOutOfBounds, *problem, 0};
  return {};
}

}  // namespace warpsmith::measure
