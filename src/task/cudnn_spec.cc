#include "cudnn_spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace warpsmith::task {

namespace {

const std::vector<std::string> kOps = {"relu",     "sigmoid",      "tanh",        "softmax",
                                       "max_pool", "average_pool", "convolution", "sum",
                                       "matmul",   "layer_norm",   "rms_norm",    "pointwise"};
// Of a chain; those of two operands at the end.
const std::vector<std::string> kSteps = {"relu", "sigmoid", "tanh",  "gelu", "gelu_tanh", "swish",
                                         "exp",  "sqrt",    "rsqrt", "abs",  "neg",       "add",
                                         "sub",  "mul",     "div",   "max",  "min"};
constexpr std::ptrdiff_t kOfTwo = 6;
constexpr std::size_t kMostSteps = 16;

bool is_pool(const std::string& op) { return op == "max_pool" || op == "average_pool"; }
bool is_norm(const std::string& op) { return op == "layer_norm" || op == "rms_norm"; }

// How many operands `inputs` names. Those of a chain's steps are named there.
struct Count {
  std::size_t least = 1, most = 1;
};
Count inputs_of(const std::string& op) {
  if (op == "convolution" || op == "matmul") return {2, 2};
  if (op == "layer_norm") return {3, 3};
  if (op == "rms_norm") return {2, 3};
  return {};
}

class Reader {
 public:
  Reader(const yaml::Node& node, const Task& task, Diagnostics& diagnostics)
      : task_(task),
        diagnostics_(diagnostics),
        before_(diagnostics.size()),
        map_(node, "`cudnn`", diagnostics) {}

  std::optional<CudnnSpec> read() {
    if (!map_.usable()) return std::nullopt;
    spec_.op = map_.word("op", kOps, {.required = true}).value_or("");
    if (spec_.op.empty()) return std::nullopt;  // what else may stand here depends on it
    read_inputs();
    if (is_pool(spec_.op)) {
      pair("window", spec_.window, true, 1);
      spec_.stride = spec_.window;
    }
    if (is_pool(spec_.op) || spec_.op == "convolution") {
      pair("stride", spec_.stride, false, 1);
      pair("padding", spec_.padding, false, 0);
    }
    if (spec_.op == "convolution") pair("dilation", spec_.dilation, false, 1);
    if (spec_.op == "sum" || spec_.op == "softmax") read_axes();
    if (is_norm(spec_.op)) read_epsilon();
    if (spec_.op == "pointwise") read_steps();
    map_.finish();
    check_tensors();
    if (diagnostics_.size() != before_) return std::nullopt;
    return std::move(spec_);
  }

 private:
  const TensorSpec* input(const std::string& name) const {
    const auto it =
        std::find_if(task_.inputs.begin(), task_.inputs.end(), [&](const auto& t) { return t.name == name; });
    return it == task_.inputs.end() ? nullptr : &*it;
  }

  void read_inputs() {
    const Count wanted = inputs_of(spec_.op);
    if (map_.has("inputs")) {
      spec_.inputs = map_.strings("inputs");
    } else {
      map_.expect("inputs");
      for (const TensorSpec& tensor : task_.inputs) spec_.inputs.push_back(tensor.name);
      if (spec_.op == "pointwise" && !spec_.inputs.empty()) spec_.inputs.resize(1);
    }
    if (spec_.inputs.size() < wanted.least || spec_.inputs.size() > wanted.most)
      map_.mistake("inputs", "`" + spec_.op + "` takes " + std::to_string(wanted.least) +
                                 (wanted.most > wanted.least ? " or " + std::to_string(wanted.most) : "") +
                                 (wanted.most == 1 ? " input" : " inputs"));
    for (const std::string& name : spec_.inputs)
      if (input(name) == nullptr) map_.mistake("inputs", "there is no input `" + name + "`");
    check_ranks();
  }

  // What is known of shapes without the sizes.
  void check_ranks() {
    std::vector<std::size_t> ranks;
    for (const std::string& name : spec_.inputs)
      if (const TensorSpec* tensor = input(name)) ranks.push_back(tensor->shape.size());
    if (ranks.empty() || ranks.size() != spec_.inputs.size()) return;
    if (spec_.op == "matmul" && (ranks[0] < 2 || ranks.back() != ranks[0]))
      map_.mistake("inputs", "`matmul` takes two tensors of equally many dimensions, two or more");
    if (is_norm(spec_.op) && ranks.size() > 1 && (ranks[1] == 0 || ranks[1] > ranks[0]))
      map_.mistake("inputs", "the weights of `" + spec_.op + "` lie along the last dimensions of its data");
    const bool keeps = spec_.op == "matmul" || spec_.op == "pointwise" || is_norm(spec_.op);
    if (keeps && !task_.outputs.empty() && task_.outputs.front().shape.size() != ranks[0])
      map_.mistake("op", "`" + spec_.op + "` gives as many dimensions as `" + spec_.inputs.front() + "` has");
  }

  // A number of the file, or the name of a scalar.
  std::optional<double> number_or_scalar(const std::string& text) const {
    for (const ScalarSpec& scalar : task_.scalars)
      if (scalar.name == text) return scalar.value;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
      return std::nullopt;
    return value;
  }

  void read_epsilon() {
    const auto text = map_.text("epsilon", {.required = true});
    if (!text) return;
    const std::optional<double> value = number_or_scalar(*text);
    if (!value)
      map_.mistake("epsilon", "`epsilon` is neither a number nor a scalar of the task: `" + *text + "`");
    else if (*value < 0)
      map_.mistake("epsilon", "`epsilon` is negative");
    else
      spec_.epsilon = *value;
  }

  void read_steps() {
    const std::vector<yaml::Node> nodes = map_.sequence("steps", {.required = true});
    if (map_.has("steps") && (nodes.empty() || nodes.size() > kMostSteps))
      map_.mistake("steps", "a chain has 1 to " + std::to_string(kMostSteps) + " steps");
    for (const yaml::Node& node : nodes)
      if (const auto text = yaml::read_text(node, "a step", diagnostics_)) read_step(node, *text);
  }

  // "relu", "add b", "mul 0.5"
  void read_step(const yaml::Node& node, const std::string& text) {
    const auto mistake = [&](const std::string& message, const std::string& hint = "") {
      diagnostics_.push_back(yaml::mistake_at(node.place(), message, hint));
    };
    const std::size_t space = text.find(' ');
    CudnnStep step = {.op = text.substr(0, space), .operand = "", .number = 0};
    const std::string operand = space == std::string::npos ? "" : text.substr(space + 1);
    const auto known = std::find(kSteps.begin(), kSteps.end(), step.op);
    if (known == kSteps.end())
      return mistake("unknown step `" + step.op + "`", yaml::suggest(step.op, kSteps));
    const bool takes_two = kSteps.end() - known <= kOfTwo;
    if (!takes_two && space != std::string::npos) return mistake("`" + step.op + "` has no second operand");
    if (takes_two && operand.empty())
      return mistake("`" + step.op + "` has a second operand", "`" + step.op + " NAME`, or a number");
    if (const std::optional<double> number = takes_two ? number_or_scalar(operand) : std::nullopt) {
      step.number = *number;
    } else if (takes_two) {
      const TensorSpec* tensor = input(operand);
      if (tensor == nullptr) return mistake("`" + operand + "` is no input, no scalar and no number");
      const TensorSpec* data = spec_.inputs.empty() ? nullptr : input(spec_.inputs.front());
      if (data != nullptr && tensor->shape.size() > data->shape.size())
        return mistake("`" + operand + "` has more dimensions than `" + data->name + "`");
      if (tensor->dtype != Dtype::kFloat32)
        return mistake("cuDNN is called for float32 alone, and `" + operand + "` is " +
                       std::string(to_string(tensor->dtype)));
      step.operand = operand;
    }
    spec_.steps.push_back(std::move(step));
  }

  void pair(const char* key, std::vector<int>& to, bool required, int least) {
    const std::vector<yaml::Node> nodes = map_.sequence(key, {.required = required});
    if (!map_.has(key)) return;
    std::vector<int> values;
    for (const yaml::Node& node : nodes)
      if (const auto value = yaml::read_integer(node, std::string("`") + key + "`", diagnostics_)) {
        if (*value < least || *value > 1024)
          map_.mistake(key, "`" + std::string(key) + "` is out of range", std::to_string(least) + " to 1024");
        values.push_back(static_cast<int>(*value));
      }
    if (nodes.size() != 2)
      map_.mistake(key, "`" + std::string(key) + "` is of two dimensions", "[height, width]");
    to = std::move(values);
  }

  void read_axes() {
    const TensorSpec* tensor = spec_.inputs.empty() ? nullptr : input(spec_.inputs.front());
    for (const yaml::Node& node : map_.sequence("axes", {.required = spec_.op == "softmax"})) {
      const auto axis = yaml::read_integer(node, "`axes`", diagnostics_);
      if (!axis) continue;
      if (tensor != nullptr && (*axis < 0 || *axis >= static_cast<std::int64_t>(tensor->shape.size())))
        map_.mistake("axes", "`" + tensor->name + "` has no axis " + std::to_string(*axis));
      spec_.axes.push_back(static_cast<int>(*axis));
    }
    if (spec_.op == "softmax" && map_.has("axes") && spec_.axes.size() != 1)
      map_.mistake("axes", "`softmax` is over one axis");
  }

  void check_tensors() {
    if (task_.outputs.size() != 1) map_.mistake("op", "an operator of cuDNN has one output");
    const bool output = std::all_of(task_.outputs.begin(), task_.outputs.end(),
                                    [](const TensorSpec& tensor) { return tensor.dtype == Dtype::kFloat32; });
    const bool inputs = std::all_of(spec_.inputs.begin(), spec_.inputs.end(), [&](const std::string& name) {
      const TensorSpec* tensor = input(name);
      return tensor == nullptr || tensor->dtype == Dtype::kFloat32;
    });
    if (!output || !inputs) map_.mistake("op", "cuDNN is called for float32 alone");
    const auto strided = std::find_if(task_.inputs.begin(), task_.inputs.end(),
                                      [](const TensorSpec& tensor) { return !tensor.strides.empty(); });
    if (strided != task_.inputs.end())
      map_.mistake("op",
                   "cuDNN is called with contiguous tensors, and `" + strided->name + "` has `strides`");
  }

  const Task& task_;
  Diagnostics& diagnostics_;
  std::size_t before_;
  yaml::MapReader map_;
  CudnnSpec spec_;
};

}  // namespace

std::optional<CudnnSpec> read_cudnn(const yaml::Node& node, const Task& task, Diagnostics& diagnostics) {
  return Reader(node, task, diagnostics).read();
}

}  // namespace warpsmith::task
