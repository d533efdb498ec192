#include "cudnn_graph.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include "cudnn_calls.h"
#include "cudnn_library.h"
#include "warpsmith/base/error.h"
#include "warpsmith/device/gpu.h"

#if CUDNN_MAJOR >= 9

namespace warpsmith::measure {

namespace {

using cudnn::api;
using cudnn::check;

constexpr std::int64_t kMostNotes = 32;

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    check(api().cudnnBackendCreateDescriptor(type, &raw_), "making a descriptor");
  }
  Descriptor(Descriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (raw_ != nullptr && !device::gpu_is_lost()) api().cudnnBackendDestroyDescriptor(raw_);
  }
  cudnnBackendDescriptor_t raw() const { return raw_; }

  template <typename T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const std::vector<T>& values) {
    check(api().cudnnBackendSetAttribute(raw_, name, type, static_cast<std::int64_t>(values.size()),
                                         values.data()),
          "describing a graph");
  }
  template <typename T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, T value) {
    check(api().cudnnBackendSetAttribute(raw_, name, type, 1, &value), "describing a graph");
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& other) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.raw());
  }
  void set(cudnnBackendAttributeName_t name, bool value) { set(name, CUDNN_TYPE_BOOLEAN, value); }

  std::int64_t integer(cudnnBackendAttributeName_t name) const {
    std::int64_t value = 0, count = 0;
    check(api().cudnnBackendGetAttribute(raw_, name, CUDNN_TYPE_INT64, 1, &count, &value), "asking a plan");
    return value;
  }

  cudnnStatus_t try_finalize() { return api().cudnnBackendFinalize(raw_); }
  void finalize(const char* doing) { check(try_finalize(), doing); }

 private:
  cudnnBackendDescriptor_t raw_ = nullptr;
};

Descriptor describe_tensor(const GraphTensor& tensor, std::int64_t uid) {
  Descriptor d(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  d.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  d.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, tensor.dims);
  d.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, tensor.strides);
  d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, uid);
  d.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, tensor.alignment);
  if (tensor.kind == GraphTensor::Kind::kBetween) d.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  if (tensor.kind == GraphTensor::Kind::kNumber) d.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  d.finalize("describing a tensor");
  return d;
}

cudnnPointwiseMode_t pointwise_mode(const std::string& op) {
  static const std::map<std::string, cudnnPointwiseMode_t> kModes = {
      {"add", CUDNN_POINTWISE_ADD},         {"sub", CUDNN_POINTWISE_SUB},
      {"mul", CUDNN_POINTWISE_MUL},         {"div", CUDNN_POINTWISE_DIV},
      {"max", CUDNN_POINTWISE_MAX},         {"min", CUDNN_POINTWISE_MIN},
      {"relu", CUDNN_POINTWISE_RELU_FWD},   {"sigmoid", CUDNN_POINTWISE_SIGMOID_FWD},
      {"tanh", CUDNN_POINTWISE_TANH_FWD},   {"gelu", CUDNN_POINTWISE_GELU_FWD},
      {"swish", CUDNN_POINTWISE_SWISH_FWD}, {"gelu_tanh", CUDNN_POINTWISE_GELU_APPROX_TANH_FWD},
      {"exp", CUDNN_POINTWISE_EXP},         {"sqrt", CUDNN_POINTWISE_SQRT},
      {"rsqrt", CUDNN_POINTWISE_RSQRT},     {"abs", CUDNN_POINTWISE_ABS},
      {"neg", CUDNN_POINTWISE_NEG}};
  const auto it = kModes.find(op);
  if (it == kModes.end()) throw Error("cuDNN's graphs are not asked for `" + op + "`");
  return it->second;
}

std::string operator_of(const GraphShape& shape) {
  if (shape.nodes.size() > 1) return "this chain";
  return "`" + shape.nodes.front().op + "`";
}

bool says_unsupported(cudnnStatus_t status) {
  return CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED;
}

struct Plan {
  Descriptor config, plan;
  std::int64_t engine = 0;
  std::uint64_t workspace = 0;
};

}  // namespace

struct CudnnGraph::State {
  GraphShape shape;
  std::vector<Descriptor> descriptors;           // what the graph consists of
  std::vector<std::size_t> tensors, operations;  // among them
  std::vector<Plan> plans;
  device::GpuMemory workspace;
  std::vector<float> numbers;  // by tensor: handed over by address

  Descriptor& add(Descriptor descriptor) { return descriptors.emplace_back(std::move(descriptor)); }
  const Descriptor& tensor(std::size_t number) const { return descriptors[tensors[number]]; }

  void add_operation(Descriptor operation) {
    operation.finalize("describing an operation");
    operations.push_back(descriptors.size());
    add(std::move(operation));
  }

  void add_matmul(const GraphNode& node) {
    Descriptor& how = add(Descriptor(CUDNN_BACKEND_MATMUL_DESCRIPTOR));
    how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    how.finalize("describing a matrix product");
    Descriptor operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, tensor(node.from[0]));
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, tensor(node.from[1]));
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, tensor(node.to));
    add_operation(std::move(operation));
  }

  // Inference: in the other phase mean and deviation would be outputs as well.
  void add_norm(const GraphNode& node) {
    Descriptor operation(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE,
                  node.op == "layer_norm" ? CUDNN_LAYER_NORM : CUDNN_RMS_NORM);
    operation.set(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, CUDNN_NORM_FWD_INFERENCE);
    operation.set(CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, tensor(node.from[0]));
    operation.set(CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, tensor(node.from[1]));
    operation.set(CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, tensor(node.from[2]));
    if (node.from.size() > 3) operation.set(CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, tensor(node.from[3]));
    operation.set(CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, tensor(node.to));
    add_operation(std::move(operation));
  }

  void add_pointwise(const GraphNode& node) {
    Descriptor& how = add(Descriptor(CUDNN_BACKEND_POINTWISE_DESCRIPTOR));
    how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, pointwise_mode(node.op));
    how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    how.finalize("describing a pointwise operator");
    Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensor(node.from[0]));
    if (node.from.size() > 1) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensor(node.from[1]));
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensor(node.to));
    add_operation(std::move(operation));
  }

  // Whether an engine computes in less than the float32 that strict math wants.
  bool rounds(const Descriptor& engine) const {
    std::array<cudnnBackendNumericalNote_t, kMostNotes> notes{};
    std::int64_t count = 0;
    check(api().cudnnBackendGetAttribute(engine.raw(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                         CUDNN_TYPE_NUMERICAL_NOTE, kMostNotes, &count, notes.data()),
          "asking an engine");
    const bool multiplies = shape.nodes.front().op == "matmul";
    return std::any_of(notes.begin(), notes.begin() + std::min(count, kMostNotes), [&](auto note) {
      return note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
             note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
             (multiplies && note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    });
  }

  // What heuristics offer; nothing where they have nothing to say of this graph.
  std::vector<Descriptor> configs(const Descriptor& graph, cudnnBackendHeurMode_t mode) const {
    Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    const cudnnStatus_t status = heuristics.try_finalize();
    if (says_unsupported(status)) return {};
    check(status, "asking the heuristics");
    std::int64_t count = 0;
    check(api().cudnnBackendGetAttribute(heuristics.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
          "asking the heuristics");
    std::vector<Descriptor> found;
    std::vector<cudnnBackendDescriptor_t> raw;
    for (std::int64_t i = 0; i < count; ++i)
      raw.push_back(found.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).raw());
    if (raw.empty()) return found;
    // Those that fail its checks are not counted here, and stay empty at the end.
    check(api().cudnnBackendGetAttribute(heuristics.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, raw.data()),
          "asking the heuristics");
    while (static_cast<std::int64_t>(found.size()) > count) found.pop_back();
    return found;
  }

  static Descriptor engine_of(const Descriptor& config) {
    Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendDescriptor_t raw = engine.raw();
    std::int64_t count = 0;
    check(api().cudnnBackendGetAttribute(config.raw(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw),
          "asking for an engine");
    return engine;
  }
};

CudnnGraph::CudnnGraph(GraphShape shape) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.shape = std::move(shape);
  // Descriptors are referred to while more are added.
  s.descriptors.reserve(s.shape.tensors.size() + 2 * s.shape.nodes.size() + 1);
  for (std::size_t i = 0; i < s.shape.tensors.size(); ++i) {
    s.tensors.push_back(s.descriptors.size());
    s.add(describe_tensor(s.shape.tensors[i], static_cast<std::int64_t>(i) + 1));
    s.numbers.push_back(s.shape.tensors[i].number);
  }
  for (const GraphNode& node : s.shape.nodes) {
    if (node.op == "matmul")
      s.add_matmul(node);
    else if (node.op == "layer_norm" || node.op == "rms_norm")
      s.add_norm(node);
    else
      s.add_pointwise(node);
  }
}

CudnnGraph::~CudnnGraph() {
  if (!state_) return;
  state_->plans.clear();  // before what they were made from
}

void CudnnGraph::make_plans(bool strict, std::size_t most) {
  State& s = *state_;
  Descriptor& graph = s.add(Descriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, cudnn::handle());
  std::vector<cudnnBackendDescriptor_t> operations;
  for (const std::size_t number : s.operations) operations.push_back(s.descriptors[number].raw());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations);
  const std::string what = operator_of(s.shape);
  const cudnnStatus_t status = graph.try_finalize();
  if (says_unsupported(status)) throw NotCovered("cuDNN has no graph for " + what);
  check(status, "making a graph");

  int rounding = 0;
  std::string trouble;  // of a plan that should have worked
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
    for (Descriptor& config : s.configs(graph, mode)) {
      if (s.plans.size() == most) break;
      const Descriptor engine = State::engine_of(config);
      if (strict && s.rounds(engine)) {
        ++rounding;
        continue;
      }
      Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, cudnn::handle());
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
      const cudnnStatus_t built = plan.try_finalize();
      if (says_unsupported(built)) continue;
      try {
        check(built, "making a plan");
      } catch (const Error& e) {
        trouble = e.what();
        continue;
      }
      const std::int64_t number = engine.integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX),
                         bytes = plan.integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
      s.plans.push_back({std::move(config), std::move(plan), number, static_cast<std::uint64_t>(bytes)});
    }
  if (s.plans.empty() && !trouble.empty()) throw Error(trouble);
  if (s.plans.empty())
    throw NotCovered("cuDNN has no engine for " + what + (strict ? " in strict float32" : "") +
                     (rounding > 0 ? ": those that it offers use TF32" : ""));
  std::uint64_t bytes = 0;
  for (const Plan& plan : s.plans) bytes = std::max(bytes, plan.workspace);
  s.workspace = device::GpuMemory(std::max<std::uint64_t>(1, bytes));
}

std::size_t CudnnGraph::plans() const { return state_->plans.size(); }

std::string CudnnGraph::name(std::size_t plan) const {
  return "engine " + std::to_string(state_->plans[plan].engine);
}

std::function<void()> CudnnGraph::bind(std::size_t plan, const std::vector<void*>& inputs,
                                       void* output) const {
  State& s = *state_;
  std::vector<std::int64_t> uids;
  std::vector<void*> addresses;
  for (std::size_t i = 0; i < s.shape.tensors.size(); ++i) {
    const GraphTensor& tensor = s.shape.tensors[i];
    if (tensor.kind == GraphTensor::Kind::kBetween) continue;
    uids.push_back(static_cast<std::int64_t>(i) + 1);
    addresses.push_back(tensor.kind == GraphTensor::Kind::kInput    ? inputs[tensor.input]
                        : tensor.kind == GraphTensor::Kind::kOutput ? output
                                                                    : &s.numbers[i]);
  }
  auto pack = std::make_shared<Descriptor>(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack->set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, uids);
  pack->set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, addresses);
  pack->set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
            reinterpret_cast<void*>(s.workspace.address()));
  pack->finalize("binding operands");
  return [pack, raw = s.plans[plan].plan.raw()] {
    check(api().cudnnBackendExecute(cudnn::handle(), raw, pack->raw()), "a graph");
  };
}

}  // namespace warpsmith::measure

#else

namespace warpsmith::measure {

struct CudnnGraph::State {};
CudnnGraph::CudnnGraph(GraphShape) {
  throw NotCovered("this program was built with cuDNN 8, which is asked for no graphs");
}
CudnnGraph::~CudnnGraph() = default;
void CudnnGraph::make_plans(bool, std::size_t) {}
std::size_t CudnnGraph::plans() const { return 0; }
std::string CudnnGraph::name(std::size_t) const { return ""; }
std::function<void()> CudnnGraph::bind(std::size_t, const std::vector<void*>&, void*) const { return {}; }

}  // namespace warpsmith::measure

#endif
