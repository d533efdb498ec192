#include "cudnn_graph_shape.h"

#include <algorithm>
#include <map>
#include <utility>

#include "warpsmith/base/error.h"

namespace warpsmith::measure {

namespace {

using Sizes = std::vector<std::int64_t>;

constexpr std::int64_t kAlignment = 16, kLongestRow = 1024, kShortestRow = 64;

std::int64_t product(const Sizes& sizes, std::size_t begin, std::size_t end) {
  std::int64_t all = 1;
  for (std::size_t i = begin; i < end; ++i) all *= sizes[i];
  return all;
}

Sizes packed(const Sizes& dims) {
  Sizes strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

std::string text(const Sizes& sizes) {
  std::string out;
  for (const std::int64_t size : sizes) out += (out.empty() ? "" : " x ") + std::to_string(size);
  return out.empty() ? "one element" : out;
}

// A step with a second operand; without the name of an input it is a number.
bool takes_two(const std::string& op) {
  return op == "add" || op == "sub" || op == "mul" || op == "div" || op == "max" || op == "min";
}

class Builder {
 public:
  Builder(const task::Task& task, const task::Dims& dims)
      : task_(task),
        spec_(*task.cudnn),
        dims_(dims),
        output_(task::shape_at(task.outputs.front(), dims)),
        data_(shape_of(index_of(spec_.inputs.front()))) {}

  GraphShape build() {
    if (spec_.op == "matmul")
      matmul();
    else if (spec_.op == "pointwise")
      pointwise();
    else
      norm();
    return std::move(graph_);
  }

 private:
  using Kind = GraphTensor::Kind;

  std::size_t index_of(const std::string& name) const {
    const auto it = std::find_if(task_.inputs.begin(), task_.inputs.end(),
                                 [&](const task::TensorSpec& input) { return input.name == name; });
    if (it == task_.inputs.end()) throw Error("there is no input `" + name + "`");
    return static_cast<std::size_t>(it - task_.inputs.begin());
  }
  Sizes shape_of(std::size_t input) const { return task::shape_at(task_.inputs[input], dims_); }

  void expect_output(const Sizes& shape) const {
    if (shape != output_) throw Error("cuDNN's output is " + text(shape) + ", the task's " + text(output_));
  }

  std::size_t add(GraphTensor tensor) {
    if (tensor.strides.empty()) tensor.strides = packed(tensor.dims);
    graph_.tensors.push_back(std::move(tensor));
    return graph_.tensors.size() - 1;
  }
  // An input is one tensor, however often it is used.
  std::size_t add_input(const std::string& name, Sizes dims, Sizes strides = {}) {
    const std::size_t input = index_of(name);
    if (const auto it = inputs_.find(input); it != inputs_.end()) return it->second;
    const auto off = static_cast<std::int64_t>(task::misalignment_at(task_.inputs[input], dims_));
    return inputs_[input] = add({.kind = Kind::kInput,
                                 .dims = std::move(dims),
                                 .strides = std::move(strides),
                                 .input = input,
                                 .alignment = off == 0 ? kAlignment : std::min(kAlignment, off & -off)});
  }
  std::size_t add_number(double value, std::size_t rank) {
    return add({.kind = Kind::kNumber, .dims = Sizes(rank, 1), .number = static_cast<float>(value)});
  }

  void matmul() {
    const Sizes other = shape_of(index_of(spec_.inputs[1]));
    const std::size_t rank = data_.size();
    const bool fit = rank >= 2 && other.size() == rank && data_[rank - 1] == other[rank - 2] &&
                     std::equal(data_.begin(), data_.end() - 2, other.begin());
    if (!fit) throw Error("there is no product of " + text(data_) + " and " + text(other));
    const std::int64_t batch = product(data_, 0, rank - 2), m = data_[rank - 2], k = data_[rank - 1],
                       n = other[rank - 1];
    Sizes shape = data_;
    shape.back() = n;
    expect_output(shape);
    const std::size_t a = add_input(spec_.inputs[0], {batch, m, k});
    // The same input twice is two tensors with a place each.
    inputs_.clear();
    const std::size_t b = add_input(spec_.inputs[1], {batch, k, n});
    graph_.nodes.push_back({spec_.op, {a, b}, add({.kind = Kind::kOutput, .dims = {batch, m, n}})});
  }

  void norm() {
    const Sizes weights = shape_of(index_of(spec_.inputs[1]));
    const bool fit =
        weights.size() <= data_.size() &&
        std::equal(weights.begin(), weights.end(), data_.end() - static_cast<std::ptrdiff_t>(weights.size()));
    if (!fit) throw Error("weights of " + text(weights) + " are not the last dimensions of " + text(data_));
    expect_output(data_);
    const std::int64_t n = product(weights, 0, weights.size()),
                       rows = product(data_, 0, data_.size() - weights.size());
    const Sizes of_data = {rows, n, 1, 1}, of_weights = {1, n, 1, 1}, strides = {n, 1, n, n};
    GraphNode node = {spec_.op, {add_input(spec_.inputs[0], of_data, strides)}, 0};
    node.from.push_back(add_number(spec_.epsilon, of_data.size()));
    for (std::size_t i = 1; i < spec_.inputs.size(); ++i) {
      if (shape_of(index_of(spec_.inputs[i])) != weights)
        throw Error("`" + spec_.inputs[i] + "` is not " + text(weights) + ", as the weights are");
      node.from.push_back(add_input(spec_.inputs[i], of_weights, strides));
    }
    node.to = add({.kind = Kind::kOutput, .dims = of_data, .strides = strides});
    graph_.nodes.push_back(std::move(node));
  }

  // An operand's dims among those of the data; ones in front of its own, as broadcasting has it.
  Sizes folded(const std::string& name, const Sizes& shape) const {
    const std::size_t rank = data_.size();
    if (shape.size() > rank) throw Error("`" + name + "` has more dimensions than " + text(data_));
    Sizes full(rank - shape.size(), 1);
    full.insert(full.end(), shape.begin(), shape.end());
    for (std::size_t i = 0; i < rank; ++i)
      if (full[i] != 1 && full[i] != data_[i])
        throw Error("`" + name + "` of " + text(shape) + " cannot be repeated to " + text(data_));
    if (rank == 1 && full[0] == data_[0]) return {1, full[0] / row_, row_};
    if (rank <= 3) {
      full.insert(full.begin(), 3 - rank, 1);
      return full;
    }
    const std::int64_t front = product(full, 0, rank - 2);
    if (front != 1 && front != product(data_, 0, rank - 2))
      throw Error("`" + name + "` of " + text(shape) + " is repeated in some of the dimensions alone");
    return {front, full[rank - 2], full[rank - 1]};
  }

  // A vector's rows: powers of two that divide it.
  std::int64_t row_length() const {
    const std::int64_t all = data_.front();
    std::int64_t row = 1;
    while (row < kLongestRow && all % (2 * row) == 0) row *= 2;
    return row < kShortestRow ? all : row;
  }

  void pointwise() {
    expect_output(data_);
    if (data_.size() == 1) row_ = std::max<std::int64_t>(1, row_length());
    const Sizes dims = folded(spec_.inputs.front(), data_);
    std::size_t last = add_input(spec_.inputs.front(), dims);
    for (std::size_t i = 0; i < spec_.steps.size(); ++i) {
      const task::CudnnStep& step = spec_.steps[i];
      GraphNode node = {step.op, {last}, 0};
      if (!step.operand.empty())
        node.from.push_back(add_input(step.operand, folded(step.operand, shape_of(index_of(step.operand)))));
      else if (takes_two(step.op))
        node.from.push_back(add_number(step.number, dims.size()));
      const bool ends = i + 1 == spec_.steps.size();
      last = node.to = add({.kind = ends ? Kind::kOutput : Kind::kBetween, .dims = dims});
      graph_.nodes.push_back(std::move(node));
    }
  }

  const task::Task& task_;
  const task::CudnnSpec& spec_;
  const task::Dims& dims_;
  Sizes output_, data_;
  std::int64_t row_ = 1;                       // of a vector
  std::map<std::size_t, std::size_t> inputs_;  // of the task -> tensor
  GraphShape graph_;
};

}  // namespace

bool is_graph_operator(const std::string& op) {
  return op == "matmul" || op == "layer_norm" || op == "rms_norm" || op == "pointwise";
}

GraphShape graph_shape(const task::Task& task, const task::Dims& dims) { return Builder(task, dims).build(); }

}  // namespace warpsmith::measure
