#include "cudnn_spec.h"

#include <algorithm>

namespace warpsmith::task {

namespace {

const std::vector<std::string> kOps = {"relu",     "sigmoid",      "tanh",        "softmax",
                                       "max_pool", "average_pool", "convolution", "sum"};

bool is_pool(const std::string& op) { return op == "max_pool" || op == "average_pool"; }

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
    const std::size_t wanted = spec_.op == "convolution" ? 2 : 1;
    if (map_.has("inputs")) {
      spec_.inputs = map_.strings("inputs");
    } else {
      map_.expect("inputs");
      for (const TensorSpec& tensor : task_.inputs) spec_.inputs.push_back(tensor.name);
    }
    if (spec_.inputs.size() != wanted)
      map_.mistake("inputs", "`" + spec_.op + "` takes " + std::to_string(wanted) +
                                 (wanted == 1 ? " input" : " inputs"));
    for (const std::string& name : spec_.inputs)
      if (input(name) == nullptr) map_.mistake("inputs", "there is no input `" + name + "`");
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
