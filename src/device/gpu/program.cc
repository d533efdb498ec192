#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "../dtype_bits.h"
#include "driver.h"
#include "fill.h"
#include "outcome.h"
#include "warpsmith/device/gpu.h"

namespace warpsmith::device {

namespace {

constexpr std::int64_t kSmemWithoutAsking = 48 * 1024;
constexpr std::size_t kArgumentBytes = sizeof(CUtensorMap);  // the largest argument
constexpr int kMostAttributes = 3;

struct Refusal {
  Verdict verdict;
  std::string detail;
};
[[noreturn]] void refuse(Verdict verdict, int line, const std::string& why) {
  throw Refusal{verdict, (line > 0 ? "kernel.cu:" + std::to_string(line) + ": " : "") + why};
}

struct Variable {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  PinnedMemory first;  // its bytes as they were loaded
};

// What a kernel is and takes.
struct Function {
  CUfunction function = nullptr;
  std::vector<std::size_t> argument_bytes;
  int max_threads = 0;
  std::int64_t static_smem = 0;
  std::int64_t smem_allowed = 0;  // dynamic, as set last
};

struct alignas(64) Argument {
  std::byte bytes[kArgumentBytes];
};

// One step on one set, ready to go.
struct Step {
  task::StepKind kind = task::StepKind::kLaunch;
  CUfunction function = nullptr;
  CUlaunchConfig config{};
  CUlaunchAttribute attributes[kMostAttributes]{};
  std::vector<Argument> arguments;
  std::vector<void*> pointers;  // to them
  CUdeviceptr destination = 0, source = 0;
  std::uint64_t bytes = 0, pattern = 0;
  std::size_t pattern_bytes = 1;
};

// Where it is not known how many there are (-1), the driver's error behind the last one says so.
std::vector<std::size_t> argument_sizes(CUfunction function, int count) {
  std::vector<std::size_t> sizes;
  if (driver().cuFuncGetParamInfo == nullptr) return sizes;
  std::size_t offset = 0, bytes = 0;
  while (static_cast<int>(sizes.size()) != count &&
         driver().cuFuncGetParamInfo(function, sizes.size(), &offset, &bytes) == CUDA_SUCCESS)
    sizes.push_back(bytes);
  return sizes;
}

int attribute(CUfunction function, CUfunction_attribute which) {
  int value = 0;
  check(driver().cuFuncGetAttribute(&value, which, function), "cannot ask what a kernel takes");
  return value;
}

std::size_t bytes_of(task::ArgKind kind) {
  switch (kind) {
    case task::ArgKind::kPointer:
    case task::ArgKind::kI64:
    case task::ArgKind::kF64:
      return 8;
    case task::ArgKind::kI32:
    case task::ArgKind::kF32:
      return 4;
    case task::ArgKind::kF16:
      return 2;
    case task::ArgKind::kTensorMap:
      return sizeof(CUtensorMap);
  }
  return 0;
}

template <typename T>
void put(Argument& argument, const T& value) {
  std::memcpy(argument.bytes, &value, sizeof value);
}

CUtensorMapDataType tensor_map_type(task::Dtype dtype, int line) {
  using enum task::Dtype;
  switch (dtype) {
    case kFloat64:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    case kFloat32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case kFloat16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case kBfloat16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case kInt64:
      return CU_TENSOR_MAP_DATA_TYPE_INT64;
    case kInt32:
      return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case kUint8:
    case kInt8:
    case kBool:
    case kFloat8E4m3:
    case kFloat8E5m2:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    case kInt16:
      return CU_TENSOR_MAP_DATA_TYPE_UINT16;
  }
  refuse(Verdict::kUnsupported, line, "a tensor map of that type");
}

CUtensorMapSwizzle swizzle_of(int bytes) {
  switch (bytes) {
    case 32:
      return CU_TENSOR_MAP_SWIZZLE_32B;
    case 64:
      return CU_TENSOR_MAP_SWIZZLE_64B;
    case 128:
      return CU_TENSOR_MAP_SWIZZLE_128B;
    default:
      return CU_TENSOR_MAP_SWIZZLE_NONE;
  }
}

}  // namespace

struct GpuProgram::State {
  const Gpu& gpu;
  GpuNames names;
  CUmodule module = nullptr;
  std::map<std::string, Function> functions;  // by name expression
  std::vector<Variable> variables;
  std::string lost_variable;  // one that the module is said to have
  task::ConcretePlan plan;
  std::map<std::string, task::Dtype> dtypes;  // of operands
  std::vector<std::vector<Step>> sets;

  State(const Gpu& the_gpu, GpuNames the_names) : gpu(the_gpu), names(std::move(the_names)) {}
  ~State() {
    if (module != nullptr && !gpu_is_lost()) driver().cuModuleUnload(module);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Function& function(const std::string& expression, int line) {
    if (const auto found = functions.find(expression); found != functions.end()) return found->second;
    const auto lowered = names.kernels.find(expression);
    Function f;
    if (lowered == names.kernels.end() ||
        driver().cuModuleGetFunction(&f.function, module, lowered->second.c_str()) != CUDA_SUCCESS)
      refuse(Verdict::kLaunchError, line, "the module has no kernel `" + expression + "`");
    const auto count = names.parameters.find(expression);
    f.argument_bytes = argument_sizes(f.function, count != names.parameters.end() ? count->second : -1);
    f.max_threads = attribute(f.function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    f.static_smem = attribute(f.function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    return functions.emplace(expression, std::move(f)).first->second;
  }

  void keep_variables() {
    for (const std::string& name : names.variables) {
      Variable v;
      if (driver().cuModuleGetGlobal(&v.address, &v.bytes, module, name.c_str()) != CUDA_SUCCESS) {
        lost_variable = name;
        continue;
      }
      if (v.bytes == 0) continue;
      v.first = PinnedMemory(v.bytes);
      download(v.first.data(), v.address, v.bytes);
      variables.push_back(std::move(v));
    }
    if (!variables.empty()) check(driver().cuCtxSynchronize(), "cannot read the variables of a module");
  }

  // More than 48 KB is given to a kernel that has been allowed it.
  static CUresult allow_smem(Function& f, std::int64_t smem) {
    if (smem <= f.smem_allowed || smem + f.static_smem <= kSmemWithoutAsking) return CUDA_SUCCESS;
    const CUresult result = driver().cuFuncSetAttribute(
        f.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(smem));
    if (result == CUDA_SUCCESS) f.smem_allowed = smem;
    return result;
  }

  // Shared memory, threads, cooperative residency.
  void check_launch(const task::ConcreteStep& s) {
    Function& f = function(s.kernel, s.line);
    const std::int64_t threads = s.block[0] * s.block[1] * s.block[2];
    if (threads > f.max_threads)
      refuse(Verdict::kLaunchError, s.line,
             fmt::format("`{}` runs with at most {} threads a block, the plan has {}", s.kernel,
                         f.max_threads, threads));
    if (s.smem + f.static_smem > gpu.facts().smem_max)
      refuse(Verdict::kLaunchError, s.line,
             fmt::format("`{}` has {} bytes of shared memory, {} of them dynamic; this GPU gives a block {}",
                         s.kernel, s.smem + f.static_smem, s.smem, gpu.facts().smem_max));
    check(allow_smem(f, s.smem), "cannot raise a kernel's shared memory");
    check_arguments(s, f);
    if (s.cooperative) check_residency(s, f, threads);
    const std::int64_t cluster = s.cluster[0] * s.cluster[1] * s.cluster[2];
    if (cluster > 1 && gpu.facts().major < 9)
      refuse(Verdict::kUnsupported, s.line, "clusters want compute capability 9.0 or newer");
  }

  void check_arguments(const task::ConcreteStep& s, const Function& f) const {
    if (driver().cuFuncGetParamInfo == nullptr) return;
    if (s.args.size() != f.argument_bytes.size())
      refuse(Verdict::kLaunchError, s.line,
             fmt::format("`{}` takes {} arguments, the plan has {}", s.kernel, f.argument_bytes.size(),
                         s.args.size()));
    for (std::size_t i = 0; i < s.args.size(); ++i) {
      const task::ConcreteArg& a = s.args[i];
      if (bytes_of(a.kind) != f.argument_bytes[i])
        refuse(Verdict::kLaunchError, s.line,
               fmt::format("argument {} of `{}` has {} bytes, the plan gives {}", i + 1, s.kernel,
                           f.argument_bytes[i], bytes_of(a.kind)));
      using Int32 = std::numeric_limits<std::int32_t>;
      if (a.kind == task::ArgKind::kI32 && (a.integer < Int32::min() || a.integer > Int32::max()))
        refuse(Verdict::kLaunchError, s.line,
               fmt::format("argument {} of `{}` is {}, which no int32 holds (i64(…) is one of 64 bits)",
                           i + 1, s.kernel, a.integer));
    }
  }

  void check_residency(const task::ConcreteStep& s, const Function& f, std::int64_t threads) const {
    int blocks = 0;
    check(driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f.function, static_cast<int>(threads),
                                                               static_cast<std::size_t>(s.smem)),
          "cannot ask for a kernel's occupancy");
    const std::int64_t most = static_cast<std::int64_t>(blocks) * gpu.facts().sms;
    const std::int64_t wanted = s.grid[0] * s.grid[1] * s.grid[2];
    if (wanted > most)
      refuse(
          Verdict::kLaunchError, s.line,
          fmt::format("a cooperative launch of {} blocks, of which this GPU holds {} at once", wanted, most));
  }

  const Operand& operand(const std::map<std::string, Operand>& operands, const std::string& name,
                         int line) const {
    const auto found = operands.find(name);
    if (found == operands.end()) refuse(Verdict::kLaunchError, line, "no operand `" + name + "`");
    return found->second;
  }

  CUtensorMap tensor_map(const std::string& name, const std::map<std::string, Operand>& operands,
                         int line) const {
    const auto found = std::find_if(plan.tensor_maps.begin(), plan.tensor_maps.end(),
                                    [&](const task::ConcreteTensorMap& m) { return m.name == name; });
    if (found == plan.tensor_maps.end()) refuse(Verdict::kLaunchError, line, "no tensor map `" + name + "`");
    if (gpu.facts().major < 9 || driver().cuTensorMapEncodeTiled == nullptr)
      refuse(Verdict::kUnsupported, line, "tensor maps want compute capability 9.0 or newer");
    const Operand& tensor = operand(operands, found->tensor, line);
    const task::Dtype dtype = dtypes.at(found->tensor);
    const std::size_t rank = tensor.shape.size();
    if (rank == 0 || rank > 5 || found->tile.size() != rank)
      refuse(Verdict::kLaunchError, line,
             fmt::format("tensor map `{}` has a tile of {} sizes, its tensor has {}", name,
                         found->tile.size(), rank));
    // Innermost first.
    std::vector<cuuint64_t> sizes(tensor.shape.rbegin(), tensor.shape.rend()), strides;
    std::vector<cuuint32_t> box(found->tile.rbegin(), found->tile.rend()), steps(rank, 1);
    cuuint64_t stride = task::size_of(dtype);
    for (std::size_t i = 0; i + 1 < rank; ++i) strides.push_back(stride *= sizes[i]);
    CUtensorMap map;
    const CUresult result = driver().cuTensorMapEncodeTiled(
        &map, tensor_map_type(dtype, line), static_cast<cuuint32_t>(rank),
        reinterpret_cast<void*>(tensor.address), sizes.data(), strides.data(), box.data(), steps.data(),
        CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(found->swizzle), CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS)
      refuse(Verdict::kLaunchError, line,
             "tensor map `" + name +
                 "` is none that the hardware takes (strides are multiples of 16 bytes, a tile's side is at "
                 "most "
                 "256, its inner side fits the swizzle): " +
                 error_text(result));
    return map;
  }

  void set_argument(Argument& out, const task::ConcreteArg& a, const std::map<std::string, Operand>& operands,
                    int line) const {
    switch (a.kind) {
      case task::ArgKind::kPointer:
        return put(out, operand(operands, a.tensor, line).address);
      case task::ArgKind::kI32:
        return put(out, static_cast<std::int32_t>(a.integer));
      case task::ArgKind::kI64:
        return put(out, a.integer);
      case task::ArgKind::kF64:
        return put(out, a.real);
      case task::ArgKind::kF32:
        return put(out, static_cast<float>(a.real));
      case task::ArgKind::kF16:
        return put(out, half_bits(a.real));
      case task::ArgKind::kTensorMap:
        return put(out, tensor_map(a.tensor, operands, line));
    }
  }

  void set_launch(Step& step, const task::ConcreteStep& s, const std::map<std::string, Operand>& operands) {
    step.function = function(s.kernel, s.line).function;
    CUlaunchConfig& c = step.config;
    c.gridDimX = static_cast<unsigned>(s.grid[0]);
    c.gridDimY = static_cast<unsigned>(s.grid[1]);
    c.gridDimZ = static_cast<unsigned>(s.grid[2]);
    c.blockDimX = static_cast<unsigned>(s.block[0]);
    c.blockDimY = static_cast<unsigned>(s.block[1]);
    c.blockDimZ = static_cast<unsigned>(s.block[2]);
    c.sharedMemBytes = static_cast<unsigned>(s.smem);
    const auto next = [&](CUlaunchAttributeID id) -> CUlaunchAttributeValue& {
      step.attributes[c.numAttrs].id = id;
      return step.attributes[c.numAttrs++].value;
    };
    if (s.cooperative) next(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1;
    if (s.cluster != std::array<std::int64_t, 3>{1, 1, 1}) {
      auto& dim = next(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim;
      dim.x = static_cast<unsigned>(s.cluster[0]);
      dim.y = static_cast<unsigned>(s.cluster[1]);
      dim.z = static_cast<unsigned>(s.cluster[2]);
    }
    if (s.pdl)
      next(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION).programmaticStreamSerializationAllowed = 1;
    step.arguments.resize(s.args.size());
    for (std::size_t i = 0; i < s.args.size(); ++i)
      set_argument(step.arguments[i], s.args[i], operands, s.line);
  }

  Step make_step(const task::ConcreteStep& s, const std::map<std::string, Operand>& operands) {
    Step step;
    step.kind = s.kind;
    if (s.kind == task::StepKind::kLaunch) {
      set_launch(step, s, operands);
      return step;
    }
    if (s.kind == task::StepKind::kConst) {
      const auto lowered = names.symbols.find(s.destination);
      std::size_t bytes = 0;
      if (lowered == names.symbols.end() ||
          driver().cuModuleGetGlobal(&step.destination, &bytes, module, lowered->second.c_str()) !=
              CUDA_SUCCESS)
        refuse(Verdict::kLaunchError, s.line, "the module has no symbol `" + s.destination + "`");
      const Operand& from = operand(operands, s.source, s.line);
      if (from.bytes > bytes)
        refuse(Verdict::kLaunchError, s.line,
               fmt::format("`{}` holds {} bytes, `{}` has {}", s.destination, bytes, s.source, from.bytes));
      step.source = from.address;
      step.bytes = from.bytes;
      return step;
    }
    const Operand& to = operand(operands, s.destination, s.line);
    step.destination = to.address;
    step.bytes = to.bytes;
    if (s.kind == task::StepKind::kCopy) {
      const Operand& from = operand(operands, s.source, s.line);
      step.source = from.address;
      step.bytes = std::min(to.bytes, from.bytes);
      return step;
    }
    const task::Dtype dtype = dtypes.at(s.destination);
    if (!bits_of(dtype, s.value, &step.pattern))
      refuse(Verdict::kUnsupported, s.line,
             "a fill with that number of " + std::string(task::to_string(dtype)));
    step.pattern_bytes = task::size_of(dtype);
    return step;
  }

  CUresult run(Step& s) const {
    switch (s.kind) {
      case task::StepKind::kLaunch: {
        s.config.attrs = s.attributes;
        return driver().cuLaunchKernelEx(&s.config, s.function, s.pointers.data(), nullptr);
      }
      case task::StepKind::kFill:
        return fill_elements(driver(), s.destination, s.bytes, s.pattern, s.pattern_bytes);
      case task::StepKind::kCopy:
      case task::StepKind::kConst:
        return s.bytes == 0 ? CUDA_SUCCESS
                            : driver().cuMemcpyDtoDAsync(s.destination, s.source, s.bytes, nullptr);
    }
    return CUDA_SUCCESS;
  }
};

GpuProgram::GpuProgram(const Gpu& gpu, std::span<const std::byte> cubin, GpuNames names)
    : state_(std::make_unique<State>(gpu, std::move(names))) {
  check(driver().cuModuleLoadData(&state_->module, cubin.data()), "cannot load the candidate's cubin");
  state_->keep_variables();
}
GpuProgram::~GpuProgram() = default;

task::PlanDevice GpuProgram::plan_device() {
  task::PlanDevice device;
  device.is_cpu = false;
  device.sms = state_->gpu.facts().sms;
  device.smem_max = state_->gpu.facts().smem_max;
  device.blocks_per_sm = [this](const std::string& kernel, std::int64_t block,
                                std::int64_t smem) -> std::int64_t {
    try {
      Function& f = state_->function(kernel, 0);
      int blocks = 0;
      // Without leave for it the driver counts no block of a kernel that wants more than 48 KB.
      if (smem < 0 || smem > state_->gpu.facts().smem_max || State::allow_smem(f, smem) != CUDA_SUCCESS)
        return 0;
      if (driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(
              &blocks, f.function, static_cast<int>(block), static_cast<std::size_t>(smem)) != CUDA_SUCCESS)
        return 0;
      return blocks;
    } catch (const Refusal&) {
      return 0;
    }
  };
  return device;
}

GpuOutcome GpuProgram::prepare(const task::ConcretePlan& plan,
                               const std::map<std::string, task::Dtype>& dtypes) {
  State& s = *state_;
  s.sets.clear();
  if (!s.lost_variable.empty())
    return {Verdict::kLaunchError,
            "`" + s.lost_variable + "` of the module is not found, and could not be restored between calls",
            false};
  s.plan = plan;
  s.dtypes = dtypes;
  for (const task::ConcreteTemp& t : plan.temps) s.dtypes[t.name] = t.dtype;
  try {
    for (const task::ConcreteStep& step : plan.steps)
      if (step.kind == task::StepKind::kLaunch) s.check_launch(step);
    return {};
  } catch (const Refusal& r) {
    return {r.verdict, r.detail, false};
  }
}

GpuOutcome GpuProgram::bind(const std::map<std::string, Operand>& operands) {
  State& s = *state_;
  std::vector<Step> steps;
  try {
    for (const task::ConcreteStep& step : s.plan.steps) steps.push_back(s.make_step(step, operands));
  } catch (const Refusal& r) {
    return {r.verdict, r.detail, false};
  }
  for (Step& step : steps)
    for (Argument& argument : step.arguments) step.pointers.push_back(&argument);
  s.sets.push_back(std::move(steps));
  return {};
}

GpuOutcome GpuProgram::enqueue(int set) {
  State& s = *state_;
  std::vector<Step>& steps = s.sets.at(static_cast<std::size_t>(set));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const CUresult result = s.run(steps[i]);
    if (result == CUDA_SUCCESS) continue;
    GpuOutcome outcome = outcome_of(result);
    outcome.detail = fmt::format("kernel.cu:{}: {}", s.plan.steps[i].line, outcome.detail);
    return outcome;
  }
  return {};
}

void GpuProgram::restore_variables() {
  for (const Variable& v : state_->variables) upload(v.address, v.first.data(), v.bytes);
}

}  // namespace warpsmith::device
