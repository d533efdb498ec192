// The launch plan of a `plan` candidate: `// plan:` comments in its source. Language:
// datasets/launch_plans.md.
//
// parse() once a candidate; evaluate() once a shape, which runs lets, branches and loops and leaves a flat
// list of steps.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/task/task.h"

namespace warpsmith::task {

// An actual tensor as the plan sees it. `address` matters for aligned(); strides in elements.
struct BoundTensor {
  Dtype dtype = Dtype::kFloat32;
  std::vector<std::int64_t> shape, strides;
  std::uint64_t address = 0;
};

struct PlanDevice {
  std::int64_t sms = 1, smem_max = 227 * 1024;  // the twin's
  bool is_cpu = true;
  // blocks_per_sm(kernel, block, smem); on the CPU always 1.
  std::function<std::int64_t(const std::string& kernel, std::int64_t block, std::int64_t smem)> blocks_per_sm;
};

struct PlanBindings {
  Dims dims;
  std::map<std::string, BoundTensor> tensors;  // inputs and outputs
  std::vector<ScalarSpec> scalars;
  PlanDevice device;
};

// Bindings of a task's tensors on the CPU twin, as the task says that they lie in memory: behind 256-byte
// boundaries. Throws Error (shape_at).
PlanBindings plan_bindings(const Task& task, const Dims& dims);

struct ConcreteTemp {
  std::string name;
  Dtype dtype = Dtype::kFloat32;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
};

enum class ArgKind { kPointer, kI32, kI64, kF64, kF32, kF16, kTensorMap };
struct ConcreteArg {
  ArgKind kind = ArgKind::kI32;
  std::string tensor;  // kPointer: name of an input, output or temporary; kTensorMap: name of a tensor map
  std::int64_t integer = 0;
  double real = 0;
};

enum class StepKind { kLaunch, kFill, kCopy, kConst };
struct ConcreteStep {
  StepKind kind = StepKind::kLaunch;
  int line = 0;        // in the source, from 1
  std::string kernel;  // kLaunch: name expression, "row<float, 256>"; equal for equal kernels
  std::array<std::int64_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  std::int64_t smem = 0;
  bool cooperative = false;
  bool pdl = false;  // may begin before the launch right before it in the plan has ended
  std::vector<ConcreteArg> args;
  std::string destination,
      source;  // kFill (destination, value), kCopy, kConst (destination: a symbol of the module)
  double value = 0;
};

// A TMA descriptor, passed by value. The CPU twin has none: a plan with one is `unsupported` there.
struct ConcreteTensorMap {
  std::string name, tensor;
  std::vector<std::int64_t> tile;
  int swizzle = 0;  // bytes: 0, 32, 64 or 128
};

struct ConcretePlan {
  std::vector<ConcreteTemp> temps;
  std::vector<ConcreteTensorMap> tensor_maps;
  std::vector<ConcreteStep> steps;
};

// Thrown by evaluate(): ends as verdict launch_error (or out_of_memory where `out_of_memory`).
struct PlanError {
  int line = 0;
  std::string message;
  bool out_of_memory = false;
};

struct PlanStatement;  // src/task/plan_statement.h

// Where a name stands in the source, from 1.
struct NamePlace {
  int line = 1, column = 1;
};

// Immutable once parsed; cheap to copy; may be evaluated by several threads at once.
class LaunchPlan {
 public:
  // Mistakes (no launch at all, unknown names, bad syntax) go to `diagnostics` with the line in the source;
  // they end as compile_error. `file` names the source in them.
  static LaunchPlan parse(std::string_view source, const Task& task, std::string_view file,
                          Diagnostics& diagnostics);
  // Limits: 1,000 steps, sizes positive, grid and block within CUDA's limits, temporaries within
  // task.memory_bytes. Throws PlanError.
  ConcretePlan evaluate(const PlanBindings& bindings) const;
  // Kernel name expressions that the plan can launch, each once, in order of appearance.
  std::vector<std::string> kernels() const;
  // Module symbols that `const` fills.
  std::vector<std::string> symbols() const;
  // Of each of these names, where the first launch or `const` has it.
  std::map<std::string, NamePlace> places() const;

 private:
  std::shared_ptr<const std::vector<PlanStatement>> statements_;
  std::uint64_t memory_bytes_ = 0;
};

}  // namespace warpsmith::task
