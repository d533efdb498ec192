#include "warpsmith/measure/reference.h"

#include <ATen/ATen.h>
#include <ATen/Config.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/jit/codegen/fuser/interface.h>
#include <torch/csrc/jit/passes/graph_fuser.h>
#include <torch/csrc/jit/passes/tensorexpr_fuser.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/jit.h>
#include <torch/version.h>

#if __has_include(<c10/core/CachingDeviceAllocator.h>) && (TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 9)
#include <c10/core/CachingDeviceAllocator.h>
#define WARPSMITH_HAS_DEVICE_ALLOCATOR  // older ones have no way to it without linking torch's CUDA part
#endif

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>

#include "answers/preparation.h"
#include "torch_program.h"
#include "warpsmith/base/allocator.h"
#include "warpsmith/measure/compare.h"

namespace warpsmith::measure {

namespace {

// Flat, and a bool as its byte: 2 is no right answer.
at::Tensor flat(const at::Tensor& tensor) {
  const at::Tensor line = tensor.contiguous().view(-1);
  return line.scalar_type() == at::kBool ? line.view(at::kByte) : line;
}

constexpr const char* kFails = "the reference fails";
constexpr std::int64_t kPiece = 1 << 24;  // elements: doubles of all of a large output may find no room

// compare() of compare.h for flat tensors, piece by piece.
class TensorComparison {
 public:
  TensorComparison(const task::TensorSpec& output, double bound)
      : floating_(task::is_floating(output.dtype)), signed_zeros_(output.signed_zeros), bound_(bound) {
    if (floating_) limit_ = overflow_limit(output.dtype);
  }

  Comparison run(const at::Tensor& got, const at::Tensor& right) {
    for (std::int64_t at = 0; at < right.numel(); at += kPiece) {
      const std::int64_t count = std::min(kPiece, right.numel() - at);
      const at::Tensor g = got.narrow(0, at, count), e = right.narrow(0, at, count);
      floating_ ? add_reals(g.to(at::kDouble), e.to(at::kDouble), at) : add_integers(g, e, at);
    }
    total_.agrees = total_.wrong == 0;
    return total_;
  }

 private:
  void add_reals(const at::Tensor& got, at::Tensor right, std::int64_t begin) {
    // The usual case with one wait: a NaN anywhere makes the largest distance one.
    if (const double largest = (got - right).abs().max().item<double>();
        largest <= bound_ && !signed_zeros_) {
      total_.max_error = std::max(total_.max_error, largest);
      return;
    }
    const double infinity = std::numeric_limits<double>::infinity();
    const at::Tensor as_is = right;
    right = at::where(right.abs().gt(limit_), right.sign().mul(infinity), right);
    const at::Tensor distance = (got - right).abs();
    at::Tensor same = got.eq(right).logical_or(got.isnan().logical_and(right.isnan()));
    if (signed_zeros_)
      same =
          same.logical_and(got.signbit().eq(right.signbit()).logical_or(got.ne(0)).logical_or(right.ne(0)));
    // As compare() has it: infinite where one is NaN or infinite, or a zero of the other sign, and the other
    // is not the same.
    at::Tensor error = at::where(distance.isfinite(), distance, at::full({}, infinity, distance.options()));
    if (signed_zeros_)
      error = at::where(got.eq(0).logical_and(right.eq(0)), at::full({}, infinity, error.options()), error);
    error = at::where(same, at::zeros({}, error.options()), error);
    total_.max_error =
        std::max(total_.max_error,
                 at::where(error.isfinite(), error, at::zeros({}, error.options())).max().item<double>());
    const std::int64_t wrong = error.gt(bound_).sum().item<std::int64_t>();
    total_.wrong += wrong;
    if (wrong > 0) note_worst(error, got, as_is, begin);
  }

  void add_integers(const at::Tensor& got, const at::Tensor& right, std::int64_t begin) {
    const std::int64_t wrong = got.ne(right).sum().item<std::int64_t>();
    if (wrong == 0) return;
    total_.wrong += wrong;
    const at::Tensor error = (got.to(at::kDouble) - right.to(at::kDouble)).abs();
    note_worst(error, got, right, begin);
    total_.max_error = worst_;
  }

  // The first of the largest errors of a piece, if it is worse than what was found before.
  void note_worst(const at::Tensor& error, const at::Tensor& got, const at::Tensor& right,
                  std::int64_t begin) {
    const double largest = error.max().item<double>();
    if (largest <= worst_) return;
    worst_ = largest;
    const std::int64_t at = error.eq(largest).nonzero()[0][0].item<std::int64_t>();
    total_.worst = begin + at;
    total_.got = got[at].to(at::kDouble).item<double>();
    total_.expected = right[at].to(at::kDouble).item<double>();
  }

  bool floating_, signed_zeros_;
  double bound_, limit_ = 0, worst_ = -1;
  Comparison total_;
};

// The largest finite absolute value, as default_bound() has it.
double scale_of(const at::Tensor& right, double limit) {
  double scale = 0;
  for (std::int64_t at = 0; at < right.numel(); at += kPiece) {
    const at::Tensor e = right.narrow(0, at, std::min(kPiece, right.numel() - at)).to(at::kDouble).abs();
    scale = std::max(scale, at::where(e.le(limit), e, at::zeros({}, e.options())).max().item<double>());
  }
  return scale;
}

// The least and the largest element; NaN where one is not finite: a NaN anywhere makes both NaN.
std::pair<double, double> range_of(const at::Tensor& right) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (std::int64_t at = 0; at < right.numel(); at += kPiece) {
    const at::Tensor e = right.narrow(0, at, std::min(kPiece, right.numel() - at)).to(at::kDouble);
    const double low = e.min().item<double>(), high = e.max().item<double>();
    if (!std::isfinite(low) || !std::isfinite(high)) {
      least = most = std::numeric_limits<double>::quiet_NaN();
      break;
    }
    least = std::min(least, low);
    most = std::max(most, high);
  }
  return {least, most};
}

OutputValues plain_values(const at::Tensor& tensor, task::Dtype dtype) {
  OutputValues values;
  values.dtype = dtype;
  values.shape = to_vector(tensor.sizes());
  const std::size_t count = static_cast<std::size_t>(tensor.numel());
  if (task::is_floating(dtype)) {
    const at::Tensor reals = tensor.to(at::kCPU).to(at::kDouble).contiguous();
    values.reals.assign(reals.const_data_ptr<double>(), reals.const_data_ptr<double>() + count);
  } else {
    const at::Tensor integers = tensor.to(at::kCPU).to(at::kLong).contiguous();
    values.integers.assign(integers.const_data_ptr<std::int64_t>(),
                           integers.const_data_ptr<std::int64_t>() + count);
  }
  return values;
}

}  // namespace

void load_torch_cuda() {
  if (::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr)
    throw Error(std::string("this torch has no CUDA part, or it does not load: ") + ::dlerror());
}

struct OnTorchStream::State {
  c10::impl::VirtualGuardImpl guard{c10::DeviceType::CUDA};
  c10::Stream before;
  // A stream that is not torch's own has its handle for a number (c10/cuda/CUDAStream.h,
  // getStreamFromExternal).
  explicit State(void* stream)
      : before(guard.exchangeStream(c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::DeviceType::CUDA, 0),
                                                reinterpret_cast<c10::StreamId>(stream)))) {}
  ~State() { guard.exchangeStream(before); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

OnTorchStream::OnTorchStream(void* stream) : state_(std::make_unique<State>(stream)) {}
OnTorchStream::~OnTorchStream() = default;

void set_math(const std::string& math) {
  at::Context& context = at::globalContext();
  // The one default that is not the same everywhere (TORCH_ALLOW_TF32_CUBLAS_OVERRIDE): as it was before the
  // first call.
  static const bool cublas_default = context.allowTF32CuBLAS();
  static std::optional<bool> set;  // it is asked for before each row of calls, and the setters take a while
  const bool loose = math == "torch_default";
  if (set == loose) return;
  context.setAllowTF32CuBLAS(loose && cublas_default);
  context.setAllowTF32CuDNN(loose);
  context.setAllowFP16ReductionCuBLAS(loose);
  context.setAllowBF16ReductionCuBLAS(loose);
  set = loose;
}

void configure_torch(int threads) {
  at::set_num_threads(threads);
  set_math("strict");
  torch::jit::setGraphExecutorOptimize(false);
  torch::jit::getExecutorMode() = false;
  torch::jit::getProfilingMode() = false;
  torch::jit::overrideCanFuseOnCPU(false);
  torch::jit::overrideCanFuseOnCPULegacy(false);
  torch::jit::setTensorExprFuserEnabled(false);
  // Large outputs would otherwise come from fresh pages at every call, and the baseline would be timed on
  // page faults that a caching allocator, and the candidate's operands, do not have.
  keep_freed_memory(64 << 20);
}

std::map<std::string, std::string> torch_facts() {
  return {{"torch", TORCH_VERSION},
          {"torch_threads", std::to_string(at::get_num_threads())},
          {"torch_cpu_capability", at::get_cpu_capability()},
          {"mkl", at::hasMKL() ? "on" : "off"},
          {"mkldnn", at::hasMKLDNN() && at::globalContext().userEnabledMkldnn() ? "on" : "off"},
          {"torchscript", "graph executor optimisation, profiling and fusers off"}};
}

namespace {

// The nearest TF32, ten bits of mantissa: as the GPU's matrix units read a float.
at::Tensor rounded_to_tf32(const at::Tensor& tensor) {
  constexpr std::int64_t kHalf = 0x1000, kKept = ~std::int64_t{0x1FFF};
  return tensor.contiguous().view(at::kInt).add(kHalf).bitwise_and(kKept).view(at::kFloat);
}

// Each element by one rounding larger or smaller, as bits of its own say, which look random. Zeros stay.
at::Tensor one_rounding_away(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  const double step = type == at::kFloat      ? std::numeric_limits<float>::epsilon()
                      : type == at::kHalf     ? std::ldexp(1, -10)
                      : type == at::kBFloat16 ? std::ldexp(1, -7)
                      : type == at::kDouble   ? std::numeric_limits<double>::epsilon()
                                              : 0;
  if (step == 0) return tensor;
  const at::ScalarType bits = type == at::kFloat ? at::kInt : type == at::kDouble ? at::kLong : at::kShort;
  constexpr auto kMixer = static_cast<std::int64_t>(0x9E3779B97F4A7C15);
  const at::Tensor mixed = tensor.contiguous().view(bits).to(at::kLong).mul(kMixer);
  const auto full = [&](double value) { return at::full({}, value, tensor.options()); };
  return tensor * at::where(mixed.lt(0), full(1 - step), full(1 + step));
}

// What becomes of a reference's floating arguments before it runs. kStrict: nothing, and it runs under strict
// math whatever the task's is.
enum class Arguments { kAsTheyAre, kFloat64, kStrict, kNear, kTf32 };

at::Tensor argument_as(Arguments kind, const at::Tensor& tensor) {
  if (kind == Arguments::kFloat64 && tensor.is_floating_point()) return tensor.to(at::kDouble);
  if (kind == Arguments::kTf32 && tensor.scalar_type() == at::kFloat) return rounded_to_tf32(tensor);
  if (kind == Arguments::kNear && tensor.is_floating_point()) return one_rounding_away(tensor);
  return tensor;
}

}  // namespace

struct Reference::State {
  task::Task task;
  Place place = Place::kHost;
  TorchProgram program;
  std::optional<Preparation> preparation;
  std::vector<at::Tensor> module_state;  // of task.state, where the reference runs
  std::string without_float64;           // why; empty: right answers are in float64
  Arguments right() const { return without_float64.empty() ? Arguments::kFloat64 : Arguments::kStrict; }
  Arguments near() const { return without_float64.empty() ? Arguments::kAsTheyAre : Arguments::kNear; }
  const std::string& math_of(Arguments kind) const {
    static const std::string kStrict = "strict";
    return kind == Arguments::kStrict ? kStrict : task.math;
  }

  // Tensors over memory of `memory_place`, without copies; behind them the module's own.
  std::vector<at::Tensor> bind(const task::Dims& dims, const std::vector<std::span<const std::byte>>& inputs,
                               Place memory_place) const {
    if (inputs.size() != task.inputs.size()) throw Error("task " + task.id + ": wrong number of inputs");
    std::vector<at::Tensor> tensors;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      tensors.push_back(input_over(task.inputs[i], dims, inputs[i], memory_place));
    tensors.insert(tensors.end(), module_state.begin(), module_state.end());
    return tensors;
  }
  // Tensors where the reference runs, from bytes of the host.
  std::vector<at::Tensor> bring(const task::Dims& dims,
                                const std::vector<std::span<const std::byte>>& inputs) const {
    std::vector<at::Tensor> tensors = bind(dims, inputs, Place::kHost);
    if (place == Place::kGpu)
      for (at::Tensor& tensor : tensors) tensor = tensor.to(at::kCUDA);
    return tensors;
  }

  // From the file that module_state() (module_state.h) has written.
  void read_module_state() {
    if (task.state.empty()) return;
    std::ifstream file(task.state_file, std::ios::binary);
    for (const task::TensorSpec& spec : task.state) {
      at::Tensor tensor = at::empty(task::shape_at(spec, {}), at::TensorOptions(scalar_type(spec.dtype)));
      file.read(static_cast<char*>(tensor.data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
      if (!file)
        throw Error("task " + task.id + ": cannot read `" + spec.state_dict + "` of its module in " +
                    task.state_file.string());
      module_state.push_back(place == Place::kGpu ? tensor.to(at::kCUDA) : tensor);
    }
  }

  std::vector<c10::IValue> stack_of(const std::vector<at::Tensor>& tensors) const {
    std::vector<c10::IValue> stack(tensors.begin(), tensors.end());
    for (const task::ScalarSpec& scalar : task.scalars) {
      if (scalar.is_float) {
        stack.emplace_back(scalar.value);
      } else {
        stack.emplace_back(static_cast<std::int64_t>(scalar.value));
      }
    }
    return stack;
  }

  std::vector<at::Tensor> call(const std::vector<at::Tensor>& tensors, Arguments kind) const {
    std::vector<c10::IValue> stack = stack_of(tensors);
    set_math(math_of(kind));
    program.function().run(stack);
    return tensors_of(stack.back(), task);
  }

  // Throws where they are not what the task says of its outputs. `oracle`: floating outputs may be wider.
  void check(const std::vector<at::Tensor>& outputs, const task::Dims& dims, bool oracle) const {
    if (outputs.size() != task.outputs.size())
      throw Error("task " + task.id + ": the reference returns " + std::to_string(outputs.size()) +
                  " tensors, the task has " + std::to_string(task.outputs.size()) + " outputs");
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const task::TensorSpec& spec = task.outputs[i];
      const bool same_type = outputs[i].scalar_type() == scalar_type(spec.dtype) ||
                             (oracle && task::is_floating(spec.dtype) && outputs[i].is_floating_point());
      check_tensor(outputs[i], spec, dims, same_type, task, "output `" + spec.name + "` of the reference");
    }
  }

  // An output over its bytes, without a copy; a bool as its byte.
  at::Tensor output_of(std::size_t output, std::span<const std::byte> bytes, at::IntArrayRef shape) const {
    const task::Dtype dtype = task.outputs.at(output).dtype;
    std::size_t elements = 1;
    for (const std::int64_t size : shape) elements *= static_cast<std::size_t>(size);
    if (bytes.size() != elements * task::size_of(dtype))
      throw Error("task " + task.id + ": output `" + task.outputs[output].name + "` has another size");
    return at::from_blob(const_cast<std::byte*>(bytes.data()), shape,
                         at::TensorOptions(dtype == task::Dtype::kBool ? at::kByte : scalar_type(dtype))
                             .device(place == Place::kGpu ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU)));
  }

  std::vector<Comparison> compare(const std::vector<at::Tensor>& right, const std::vector<at::Tensor>& got,
                                  const std::vector<double>& bounds) const {
    std::vector<Comparison> all;
    for (std::size_t i = 0; i < right.size(); ++i)
      all.push_back(TensorComparison(task.outputs[i], bounds.at(i)).run(flat(got.at(i)), flat(right[i])));
    return all;
  }

  std::vector<Comparison> compare(const std::vector<at::Tensor>& right,
                                  const std::vector<std::span<const std::byte>>& got,
                                  const std::vector<double>& bounds) const {
    if (right.size() != got.size()) throw Error("task " + task.id + ": wrong number of outputs");
    std::vector<at::Tensor> tensors;
    for (std::size_t i = 0; i < right.size(); ++i) tensors.push_back(output_of(i, got[i], right[i].sizes()));
    return compare(right, tensors, bounds);
  }

  // Throws NoFloat64 where `run` throws Error in float64, but for want of memory.
  template <typename Run>
  static auto in_its_type(Arguments kind, const Run& run) {
    try {
      return run();
    } catch (const Error& e) {
      if (kind != Arguments::kFloat64 ||
          std::string_view(e.what()).find("out of memory") != std::string::npos)
        throw;
      throw NoFloat64(e.what(), e.exit_code());
    }
  }

  // `what`: for messages.
  std::vector<OutputValues> run_as(Arguments kind, const char* what, const task::Dims& dims,
                                   const std::vector<std::span<const std::byte>>& inputs) const {
    const c10::InferenceMode inference;
    return in_its_type(kind, [&] {
      return naming(task, std::string(kFails) + what, [&] {
        std::vector<at::Tensor> tensors = bring(dims, inputs);
        for (at::Tensor& tensor : tensors) tensor = argument_as(kind, tensor);
        return checked(call(tensors, kind), dims, kind == Arguments::kFloat64);
      });
    });
  }

  // What passes check(), as plain numbers.
  std::vector<OutputValues> checked(const std::vector<at::Tensor>& outputs, const task::Dims& dims,
                                    bool oracle) const {
    check(outputs, dims, oracle);
    std::vector<OutputValues> values;
    for (std::size_t i = 0; i < outputs.size(); ++i)
      values.push_back(plain_values(outputs[i], task.outputs[i].dtype));
    return values;
  }
};

Reference::Reference(const task::Task& task, Place place) : state_(std::make_unique<State>()) {
  state_->task = task;
  state_->place = place;
  if (place == Place::kGpu) at::empty({1}, at::TensorOptions(at::kCUDA));  // starts torch's CUDA
  state_->program =
      TorchProgram(task, task.reference, "reference", "forward",
                   task.inputs.size() + task.state.size() + task.scalars.size(), "inputs and scalars");
  state_->preparation.emplace(state_->task, place);
  const c10::InferenceMode inference;
  state_->read_module_state();
}

Reference::~Reference() = default;
Reference::Reference(Reference&&) noexcept = default;

const task::Task& Reference::task() const { return state_->task; }

void Reference::prepare(const task::Dims& dims, const std::vector<std::span<std::byte>>& inputs,
                        Place memory) const {
  state_->preparation->run(dims, inputs, memory);
}

std::vector<OutputValues> Reference::run(const task::Dims& dims,
                                         const std::vector<std::span<const std::byte>>& inputs) const {
  return state_->run_as(Arguments::kAsTheyAre, "", dims, inputs);
}

std::vector<OutputValues> Reference::run_oracle(const task::Dims& dims,
                                                const std::vector<std::span<const std::byte>>& inputs) const {
  return state_->run_as(state_->right(), state_->without_float64.empty() ? " in float64" : "", dims, inputs);
}

std::vector<OutputValues> Reference::run_near(const task::Dims& dims,
                                              const std::vector<std::span<const std::byte>>& inputs) const {
  return state_->run_as(state_->near(), "", dims, inputs);
}

void Reference::do_without_float64(const std::string& why) const { state_->without_float64 = why; }
const std::string& Reference::without_float64() const { return state_->without_float64; }

std::vector<OutputValues> Reference::run_rounded(
    const task::Dims& dims, const std::vector<std::span<const std::byte>>& inputs) const {
  return state_->run_as(Arguments::kTf32, " in TF32", dims, inputs);
}

bool Reference::rounds_to_tf32() const {
  return state_->place == Place::kGpu && state_->task.math == "torch_default" &&
         state_->task.reference.find("conv") != std::string::npos;
}

void Reference::release_memory() const {
  if (state_->place == Place::kGpu) release_cached_gpu_memory();
}

void release_cached_gpu_memory() {
#ifdef WARPSMITH_HAS_DEVICE_ALLOCATOR
  if (auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(c10::DeviceType::CUDA)))
    allocator->emptyCache();
#endif
}

namespace {

// As tensors_of() reads it.
c10::IValue value_of(const std::vector<at::Tensor>& outputs) {
  if (outputs.size() == 1) return outputs.front();
  return c10::ivalue::Tuple::create(std::vector<c10::IValue>(outputs.begin(), outputs.end()));
}

}  // namespace

struct Reference::Calls::State {
  const Reference::State* reference = nullptr;
  task::Dims dims;
  Arguments kind = Arguments::kAsTheyAre;
  bool oracle() const { return kind == Arguments::kFloat64; }
  std::vector<std::vector<c10::IValue>> arguments;  // by set
  std::vector<c10::IValue> results;                 // of the last run

  std::vector<at::Tensor> tensors(int number) const {
    std::vector<at::Tensor> outputs =
        tensors_of(results.at(static_cast<std::size_t>(number)), reference->task);
    reference->check(outputs, dims, oracle());
    return outputs;
  }
};

Reference::Calls::Calls(std::unique_ptr<State> state) : state_(std::move(state)) {}
Reference::Calls::~Calls() = default;
Reference::Calls::Calls(Calls&&) noexcept = default;

Reference::Calls Reference::bind(const task::Dims& dims,
                                 const std::vector<std::vector<std::span<std::byte>>>& inputs) const {
  const c10::InferenceMode inference;
  auto state = std::make_unique<Calls::State>();
  state->reference = state_.get();
  state->dims = dims;
  for (const std::vector<std::span<std::byte>>& set : inputs)
    state->arguments.push_back(state_->stack_of(state_->bind(dims, {set.begin(), set.end()}, state_->place)));
  return Calls(std::move(state));
}

Reference::Calls Reference::bind_oracle(const task::Dims& dims,
                                        const std::vector<std::vector<std::span<std::byte>>>& inputs) const {
  Calls calls = bind(dims, inputs);
  calls.state_->kind = state_->right();
  return calls;
}

Reference::Calls Reference::bind_near(const task::Dims& dims,
                                      const std::vector<std::vector<std::span<std::byte>>>& inputs) const {
  Calls calls = bind(dims, inputs);
  calls.state_->kind = state_->near();
  return calls;
}

Reference::Calls Reference::bind_rounded(const task::Dims& dims,
                                         const std::vector<std::vector<std::span<std::byte>>>& inputs) const {
  Calls calls = bind(dims, inputs);
  calls.state_->kind = Arguments::kTf32;
  return calls;
}

std::int64_t Reference::Calls::run(int first, int count) {
  using Clock = std::chrono::steady_clock;
  const c10::InferenceMode inference;
  torch::jit::Function& forward = state_->reference->program.function();
  state_->results.clear();
  state_->results.reserve(static_cast<std::size_t>(count));
  std::vector<c10::IValue> stack;
  stack.reserve(16);
  set_math(state_->reference->math_of(state_->kind));
  const Clock::time_point begin = Clock::now();
  Reference::State::in_its_type(state_->kind, [&] {
    naming(state_->reference->task, kFails, [&] {
      for (int i = first; i < first + count; ++i) {
        const std::vector<c10::IValue>& arguments = state_->arguments[static_cast<std::size_t>(i)];
        stack.assign(arguments.begin(), arguments.end());
        if (state_->kind != Arguments::kAsTheyAre)
          for (c10::IValue& argument : stack)
            if (argument.isTensor()) argument = argument_as(state_->kind, argument.toTensor());
        forward.run(stack);
        state_->results.push_back(std::move(stack.back()));
      }
    });
  });
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
}

std::vector<std::span<const std::byte>> Reference::Calls::output_memory() const {
  std::vector<std::span<const std::byte>> memory;
  for (const c10::IValue& result : state_->results)
    for (const at::Tensor& tensor : tensors_of(result, state_->reference->task))
      memory.emplace_back(static_cast<const std::byte*>(tensor.storage().data()), tensor.storage().nbytes());
  return memory;
}

void Reference::Calls::keep_outputs() {
  const c10::InferenceMode inference;
  for (c10::IValue& result : state_->results) {
    std::vector<at::Tensor> outputs = tensors_of(result, state_->reference->task);
    const auto is_input = [&](const at::Tensor& output) {
      for (const std::vector<c10::IValue>& set : state_->arguments)
        for (const c10::IValue& argument : set)
          if (argument.isTensor() && argument.toTensor().is_alias_of(output)) return true;
      return false;
    };
    if (std::none_of(outputs.begin(), outputs.end(), is_input)) continue;
    for (at::Tensor& output : outputs)
      if (is_input(output)) output = output.clone();
    result = value_of(outputs);
  }
}

void Reference::Calls::drop_outputs() { state_->results.clear(); }

Reference::Calls Reference::Calls::part(const task::Dims& dims, std::int64_t first) const {
  const c10::InferenceMode inference;
  const Reference::State& reference = *state_->reference;
  std::vector<at::Tensor> outputs = state_->tensors(0);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::vector<std::int64_t> shape = task::shape_at(reference.task.outputs[i], dims);
    if (to_vector(outputs[i].sizes()) != shape) outputs[i] = outputs[i].narrow(0, first, shape.front());
  }
  auto part = std::make_unique<State>();
  part->reference = state_->reference;
  part->dims = dims;
  part->kind = state_->kind;
  part->results.push_back(value_of(outputs));
  return Calls(std::move(part));
}

std::vector<OutputValues> Reference::Calls::outputs(int number) const {
  const c10::InferenceMode inference;
  return state_->reference->checked(
      tensors_of(state_->results.at(static_cast<std::size_t>(number)), state_->reference->task), state_->dims,
      state_->oracle());
}

std::vector<Comparison> Reference::Calls::compare(int number,
                                                  const std::vector<std::span<const std::byte>>& got,
                                                  const std::vector<double>& bounds) const {
  const c10::InferenceMode inference;
  return naming(state_->reference->task, kFails,
                [&] { return state_->reference->compare(state_->tensors(number), got, bounds); });
}

std::vector<Comparison> Reference::Calls::compare(int number, const Calls& got, int got_number,
                                                  const std::vector<double>& bounds) const {
  const c10::InferenceMode inference;
  return naming(state_->reference->task, kFails, [&] {
    return state_->reference->compare(state_->tensors(number), got.state_->tensors(got_number), bounds);
  });
}

Comparison Reference::Calls::compare_output(int number, std::size_t output, std::span<const std::byte> got,
                                            double bound) const {
  const c10::InferenceMode inference;
  const Reference::State& reference = *state_->reference;
  return naming(reference.task, kFails, [&] {
    const at::Tensor right = state_->tensors(number).at(output);
    return TensorComparison(reference.task.outputs.at(output), bound)
        .run(flat(reference.output_of(output, got, right.sizes())), flat(right));
  });
}

std::vector<std::pair<double, double>> Reference::Calls::ranges(int number) const {
  const c10::InferenceMode inference;
  return naming(state_->reference->task, kFails, [&] {
    std::vector<std::pair<double, double>> ranges;
    for (const at::Tensor& tensor : state_->tensors(number)) ranges.push_back(range_of(flat(tensor)));
    return ranges;
  });
}

std::vector<Comparison> Reference::compare(const task::Dims& dims,
                                           const std::vector<std::span<const std::byte>>& got,
                                           const std::vector<std::span<const std::byte>>& expected,
                                           const std::vector<double>& bounds) const {
  const c10::InferenceMode inference;
  return naming(state_->task, kFails, [&] {
    std::vector<at::Tensor> right;
    for (std::size_t i = 0; i < expected.size(); ++i)
      right.push_back(state_->output_of(i, expected[i], task::shape_at(state_->task.outputs.at(i), dims)));
    return state_->compare(right, got, bounds);
  });
}

std::vector<double> Reference::Calls::default_bounds(const Calls& oracle, bool* decidable) const {
  const c10::InferenceMode inference;
  const task::Task& task = state_->reference->task;
  return naming(task, kFails, [&] {
    const std::vector<at::Tensor> own = state_->tensors(0), right = oracle.state_->tensors(0);
    std::vector<double> bounds;
    *decidable = true;
    for (std::size_t i = 0; i < own.size(); ++i) {
      const task::TensorSpec& output = task.outputs[i];
      const at::Tensor exact = flat(right[i]);
      const Comparison apart =
          TensorComparison(output, std::numeric_limits<double>::max()).run(flat(own[i]), exact);
      if (apart.wrong > 0) *decidable = false;
      bounds.push_back(
          task::is_floating(output.dtype)
              ? default_bound(apart.max_error, scale_of(exact, overflow_limit(output.dtype)), output.dtype)
              : 0);
    }
    return bounds;
  });
}

std::vector<double> Reference::Calls::tf32_bounds(const Calls& oracle) const {
  const c10::InferenceMode inference;
  const task::Task& task = state_->reference->task;
  return naming(task, kFails, [&] {
    const std::vector<at::Tensor> own = state_->tensors(0), right = oracle.state_->tensors(0);
    std::vector<double> bounds;
    for (std::size_t i = 0; i < own.size(); ++i)
      bounds.push_back(task::is_floating(task.outputs[i].dtype)
                           ? tf32_bound(TensorComparison(task.outputs[i], std::numeric_limits<double>::max())
                                            .run(flat(own[i]), flat(right[i]))
                                            .max_error)
                           : 0);
    return bounds;
  });
}

}  // namespace warpsmith::measure
