#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "plan_statement.h"
#include "warpsmith/task/launch_plan.h"

namespace warpsmith::task {

namespace {

constexpr std::size_t kMaxSteps = 1000;
constexpr int kMaxStatements = 100'000;  // evaluated: bounds loops that launch nothing
constexpr std::int64_t kTempAlignment = 256;

// Bounds of the integers that a type holds; nothing for reals.
std::optional<std::pair<double, double>> integer_bounds(Dtype dtype) {
  switch (dtype) {
    case Dtype::kInt64:
      return {{-0x1p63, 0x1p63}};
    case Dtype::kInt32:
      return {{-0x1p31, 0x1p31 - 1}};
    case Dtype::kInt16:
      return {{-32768, 32767}};
    case Dtype::kInt8:
      return {{-128, 127}};
    case Dtype::kUint8:
      return {{0, 255}};
    case Dtype::kBool:
      return {{0, 1}};
    default:
      return std::nullopt;
  }
}

class Evaluation {
 public:
  Evaluation(const PlanBindings& bindings, std::uint64_t memory_bytes)
      : bindings_(bindings), memory_bytes_(memory_bytes) {
    for (const auto& [name, size] : bindings.dims) integers_[name] = size;
    integers_["SMS"] = bindings.device.sms;
    integers_["SMEM_MAX"] = bindings.device.smem_max;
    integers_["ON_CPU"] = bindings.device.is_cpu ? 1 : 0;
    for (const ScalarSpec& scalar : bindings.scalars) {
      if (scalar.is_float)
        reals_[scalar.name] = scalar.value;
      else
        integers_[scalar.name] = static_cast<std::int64_t>(scalar.value);
    }
    scope_.name = [this](std::string_view name) { return find_integer(name); };
    scope_.real = [this](std::string_view name) -> std::optional<double> {
      const auto found = reals_.find(name);
      return found == reals_.end() ? std::nullopt : std::optional(found->second);
    };
    scope_.call = [this](std::string_view function, const std::vector<std::string>& names,
                         const std::vector<std::int64_t>& values) { return call(function, names, values); };
  }

  ConcretePlan run(const std::vector<PlanStatement>& statements) {
    run_block(statements);
    if (plan_.steps.empty()) fail("the plan launches nothing at this shape");
    return std::move(plan_);
  }

 private:
  [[noreturn]] void fail(std::string message, bool out_of_memory = false) const {
    throw PlanError{line_, std::move(message), out_of_memory};
  }

  // ---- names

  const BoundTensor* find_bound(std::string_view name) const {
    const auto found = bindings_.tensors.find(std::string(name));
    return found == bindings_.tensors.end() ? nullptr : &found->second;
  }
  const ConcreteTemp* find_temp(std::string_view name) const {
    for (const ConcreteTemp& temp : plan_.temps)
      if (temp.name == name) return &temp;
    return nullptr;
  }

  std::optional<std::int64_t> find_integer(std::string_view name) const {
    const auto found = integers_.find(name);
    if (found != integers_.end()) return found->second;
    const std::size_t dot = name.find(".s");
    if (dot == std::string_view::npos || dot + 3 != name.size()) return std::nullopt;
    const BoundTensor* const tensor = find_bound(name.substr(0, dot));
    const auto axis = static_cast<std::size_t>(name[dot + 2] - '0');
    if (tensor == nullptr || axis >= tensor->strides.size()) return std::nullopt;
    return tensor->strides[axis];
  }

  std::optional<std::int64_t> call(std::string_view function, const std::vector<std::string>& names,
                                   const std::vector<std::int64_t>& values) const {
    if (function == "blocks_per_sm") {
      if (bindings_.device.is_cpu || !bindings_.device.blocks_per_sm) return 1;
      return bindings_.device.blocks_per_sm(names[0], values[0], values[1]);
    }
    const BoundTensor* const tensor = find_bound(names[0]);
    if (tensor == nullptr && find_temp(names[0]) == nullptr) return std::nullopt;
    if (function == "aligned") {
      if (values[0] <= 0) fail("aligned: the number of bytes must be positive");
      if (tensor == nullptr) return kTempAlignment % values[0] == 0 ? 1 : 0;
      return tensor->address % static_cast<std::uint64_t>(values[0]) == 0 ? 1 : 0;
    }
    return tensor == nullptr || is_contiguous(*tensor) ? 1 : 0;  // temporaries are contiguous
  }

  static bool is_contiguous(const BoundTensor& tensor) {
    std::int64_t expected = 1;
    for (std::size_t i = tensor.shape.size(); i-- > 0;) {
      if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
      expected *= tensor.shape[i];
    }
    return true;
  }
  // What moves a tensor as a whole takes its memory from the first element to the last.
  void want_contiguous(const std::string& name, const char* statement) const {
    const BoundTensor* const tensor = find_bound(name);
    if (tensor != nullptr && !is_contiguous(*tensor))
      fail(std::string(statement) + ": `" + name + "` is not contiguous");
  }

  std::int64_t evaluate(const Expression& expression) const {
    try {
      return expression.evaluate(scope_);
    } catch (const ExpressionError& error) {
      fail("`" + expression.text() + "`: " + error.message);
    }
  }
  double evaluate_real(const Expression& expression) const {
    try {
      return expression.evaluate_real(scope_);
    } catch (const ExpressionError& error) {
      fail("`" + expression.text() + "`: " + error.message);
    }
  }

  // ---- statements

  void run_block(const std::vector<PlanStatement>& statements) {
    for (const PlanStatement& statement : statements) {
      line_ = statement.line;
      if (++evaluated_ > kMaxStatements) fail("more than 100,000 statements are evaluated");
      run_statement(statement);
    }
  }

  void run_statement(const PlanStatement& statement) {
    using Kind = PlanStatement::Kind;
    switch (statement.kind) {
      case Kind::kLet:
        integers_[statement.name] = evaluate(statement.expressions[0]);
        return;
      case Kind::kIf:
        run_block(evaluate(statement.expressions[0]) != 0 ? statement.body : statement.otherwise);
        return;
      case Kind::kFor:
        return run_for(statement);
      case Kind::kTemp:
        return run_temp(statement);
      case Kind::kTensorMap:
        return run_tensormap(statement);
      case Kind::kFill:
        return run_fill(statement);
      case Kind::kCopy:
        return run_copy(statement);
      case Kind::kConst: {
        want_contiguous(statement.source, "const");
        ConcreteStep& step = add(StepKind::kConst);
        step.destination = statement.name;
        step.source = statement.source;
        return;
      }
      case Kind::kLaunch:
        return run_launch(statement);
    }
  }

  void run_for(const PlanStatement& statement) {
    const std::int64_t begin = evaluate(statement.expressions[0]), end = evaluate(statement.expressions[1]);
    for (std::int64_t i = begin; i < end; ++i) {
      line_ = statement.line;
      if (++evaluated_ > kMaxStatements) fail("more than 100,000 statements are evaluated");
      integers_[statement.name] = i;
      run_block(statement.body);
    }
  }

  void run_temp(const PlanStatement& statement) {
    if (find_temp(statement.name) != nullptr) fail("temporary `" + statement.name + "` is made twice");
    ConcreteTemp temp{statement.name, statement.dtype, {}, size_of(statement.dtype)};
    for (const Expression& expression : statement.expressions) {
      const std::int64_t size = evaluate(expression);
      if (size <= 0)
        fail("temporary `" + statement.name + "`: size `" + expression.text() + "` is " +
             std::to_string(size));
      temp.shape.push_back(size);
      if (__builtin_mul_overflow(temp.bytes, static_cast<std::uint64_t>(size), &temp.bytes))
        fail("temporary `" + statement.name + "` does not fit 64 bits", true);
    }
    if (temp.bytes > memory_bytes_ - memory_used_) {
      fail("temporary `" + statement.name + "` of " + std::to_string(temp.bytes) +
               " bytes: the task allows " + std::to_string(memory_bytes_) + " in all",
           true);
    }
    memory_used_ += temp.bytes;
    plan_.temps.push_back(std::move(temp));
  }

  void run_tensormap(const PlanStatement& statement) {
    ConcreteTensorMap map{statement.name, statement.source, {}, statement.swizzle};
    for (const Expression& expression : statement.expressions) {
      const std::int64_t size = evaluate(expression);
      if (size <= 0 || size > 256)
        fail("tensormap `" + statement.name + "`: a tile size is " + std::to_string(size) + ", not 1 to 256");
      map.tile.push_back(size);
    }
    want_contiguous(statement.source, "tensormap");
    if (find_tensor(statement.source).shape.size() != map.tile.size())
      fail("tensormap `" + statement.name + "`: the tile and `" + statement.source + "` differ in rank");
    for (const ConcreteTensorMap& other : plan_.tensor_maps)
      if (other.name == map.name) fail("tensormap `" + map.name + "` is made twice");
    plan_.tensor_maps.push_back(std::move(map));
  }

  struct TensorFacts {
    Dtype dtype = Dtype::kFloat32;
    std::vector<std::int64_t> shape;
  };
  TensorFacts find_tensor(const std::string& name) const {
    if (const BoundTensor* const bound = find_bound(name)) return {bound->dtype, bound->shape};
    if (const ConcreteTemp* const temp = find_temp(name)) return {temp->dtype, temp->shape};
    fail("`" + name + "` does not exist at this shape");
  }

  static std::uint64_t count(const std::vector<std::int64_t>& shape) {
    return std::accumulate(
        shape.begin(), shape.end(), std::uint64_t{1},
        [](std::uint64_t n, std::int64_t size) { return n * static_cast<std::uint64_t>(size); });
  }

  void run_fill(const PlanStatement& statement) {
    const double value = evaluate_real(statement.expressions[0]);
    if (const auto bounds = integer_bounds(find_tensor(statement.name).dtype)) {
      if (!(value >= bounds->first && value <= bounds->second) || value != std::floor(value)) {
        fail("fill: `" + statement.expressions[0].text() + "` is no " +
             std::string(to_string(find_tensor(statement.name).dtype)));
      }
    }
    ConcreteStep& step = add(StepKind::kFill);
    step.destination = statement.name;
    step.value = value;
  }

  void run_copy(const PlanStatement& statement) {
    const TensorFacts to = find_tensor(statement.name), from = find_tensor(statement.source);
    want_contiguous(statement.source, "copy");
    if (to.dtype != from.dtype)
      fail("copy: `" + statement.name + "` and `" + statement.source + "` differ in type");
    if (count(to.shape) != count(from.shape))
      fail("copy: `" + statement.name + "` has " + std::to_string(count(to.shape)) + " elements, `" +
           statement.source + "` has " + std::to_string(count(from.shape)));
    ConcreteStep& step = add(StepKind::kCopy);
    step.destination = statement.name;
    step.source = statement.source;
  }

  ConcreteStep& add(StepKind kind) {
    if (plan_.steps.size() == kMaxSteps) fail("more than 1,000 steps");
    ConcreteStep& step = plan_.steps.emplace_back();
    step.kind = kind;
    step.line = line_;
    return step;
  }

  std::array<std::int64_t, 3> sizes(const std::array<Expression, 3>& expressions, const char* what,
                                    const std::array<std::int64_t, 3>& most) const {
    std::array<std::int64_t, 3> values{};
    for (std::size_t i = 0; i < 3; ++i) {
      values[i] = evaluate(expressions[i]);
      if (values[i] < 1 || values[i] > most[i]) {
        fail(std::string(what) + '.' + "xyz"[i] + " is " + std::to_string(values[i]) + ", not 1 to " +
             std::to_string(most[i]));
      }
    }
    return values;
  }

  void run_launch(const PlanStatement& statement) {
    ConcreteStep step;
    step.line = line_;
    step.kernel = statement.name;
    step.grid = sizes(statement.grid, "grid", {2147483647, 65535, 65535});
    step.block = sizes(statement.block, "block", {1024, 1024, 64});
    const std::int64_t threads = step.block[0] * step.block[1] * step.block[2];
    if (threads > 1024)
      fail("a block of " + std::to_string(threads) + " threads: at most 1,024 are possible");
    step.cluster = sizes(statement.cluster, "cluster", {8, 8, 8});
    if (step.cluster[0] * step.cluster[1] * step.cluster[2] > 8) fail("a cluster of more than 8 blocks");
    for (std::size_t i = 0; i < 3; ++i)
      if (step.grid[i] % step.cluster[i] != 0) fail("the grid is no multiple of the cluster");
    step.smem = evaluate(statement.smem);
    if (step.smem < 0 || step.smem > bindings_.device.smem_max) {
      fail("dynamic shared memory of " + std::to_string(step.smem) + " bytes, not 0 to " +
           std::to_string(bindings_.device.smem_max));
    }
    step.cooperative = statement.cooperative;
    // As a plan's first it would overlap with the call before.
    step.pdl = statement.pdl && !plan_.steps.empty() && plan_.steps.back().kind == StepKind::kLaunch;
    for (std::size_t i = 0; i < statement.args.size(); ++i)
      step.args.push_back(argument(statement.args[i], i + 1));
    add(StepKind::kLaunch) = std::move(step);
  }

  ConcreteArg argument(const PlanArg& arg, std::size_t position) const {
    ConcreteArg concrete;
    concrete.kind = arg.kind;
    concrete.tensor = arg.name;
    switch (arg.kind) {
      case ArgKind::kPointer:
        find_tensor(arg.name);
        break;
      case ArgKind::kTensorMap:
        break;
      case ArgKind::kI32:
        concrete.integer = evaluate(arg.value);
        if (concrete.integer < std::numeric_limits<std::int32_t>::min() ||
            concrete.integer > std::numeric_limits<std::int32_t>::max()) {
          fail("argument " + std::to_string(position) + ": " + std::to_string(concrete.integer) +
               " does not fit int32; i64(…) passes 64 bits");
        }
        break;
      case ArgKind::kI64:
        concrete.integer = evaluate(arg.value);
        break;
      case ArgKind::kF64:
      case ArgKind::kF32:
      case ArgKind::kF16:
        concrete.real = evaluate_real(arg.value);
        break;
    }
    return concrete;
  }

  const PlanBindings& bindings_;
  const std::uint64_t memory_bytes_;
  std::uint64_t memory_used_ = 0;
  std::map<std::string, std::int64_t, std::less<>> integers_;
  std::map<std::string, double, std::less<>> reals_;
  Scope scope_;
  ConcretePlan plan_;
  int line_ = 0;
  int evaluated_ = 0;
};

}  // namespace

PlanBindings plan_bindings(const Task& task, const Dims& dims) {
  PlanBindings bindings;
  bindings.dims = dims;
  bindings.scalars = task.scalars;
  for (const auto* list : {&task.inputs, &task.outputs}) {
    for (const TensorSpec& spec : *list) {
      bindings.tensors[spec.name] = {
          spec.dtype, shape_at(spec, dims), strides_at(spec, dims),
          static_cast<std::uint64_t>(kTempAlignment) + misalignment_at(spec, dims)};
    }
  }
  return bindings;
}

ConcretePlan LaunchPlan::evaluate(const PlanBindings& bindings) const {
  if (!statements_) throw PlanError{0, "there is no plan", false};
  return Evaluation(bindings, memory_bytes_).run(*statements_);
}

}  // namespace warpsmith::task
