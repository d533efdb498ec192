#include "cudnn_operators.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cudnn_library.h"
#include "warpsmith/base/error.h"

namespace warpsmith::measure {

namespace {

using cudnn::api;
using cudnn::check;
using cudnn::handle;
using Enqueue = decltype(CudnnOperator::enqueue);

constexpr int kMostAlgorithms = 8;

// Descriptors are small and live as long as the process, which measures a few tasks.
using Shape = std::array<int, 4>;

cudnnTensorDescriptor_t tensor(const Shape& s) {
  cudnnTensorDescriptor_t d = nullptr;
  check(api().cudnnCreateTensorDescriptor(&d), "making a descriptor");
  check(api().cudnnSetTensor4dDescriptor(d, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, s[0], s[1], s[2], s[3]),
        "describing a tensor");
  return d;
}

std::string text(const Shape& s) {
  std::string out;
  for (const int size : s) out += (out.empty() ? "" : " x ") + std::to_string(size);
  return out;
}

int product(const std::vector<std::int64_t>& shape, std::size_t begin, std::size_t end) {
  std::int64_t all = 1;
  for (std::size_t i = begin; i < end; ++i) all *= shape[i];
  if (all > (std::int64_t{1} << 31) - 1) throw Error("cuDNN counts elements in 32 bits");
  return static_cast<int>(all);
}

// Four dimensions: ones in front.
Shape padded(const std::vector<std::int64_t>& shape) {
  if (shape.size() > 4) throw Error("cuDNN is called for up to four dimensions");
  Shape s = {1, 1, 1, 1};
  for (std::size_t i = 0; i < shape.size(); ++i) s[4 - shape.size() + i] = product(shape, i, i + 1);
  return s;
}

constexpr float kOne = 1, kZero = 0;

class Maker {
 public:
  Maker(const task::Task& task, const task::Dims& dims, bool strict,
        std::map<std::string, std::string>& flags)
      : spec_(*task.cudnn),
        strict_(strict),
        flags_(flags),
        output_(task::shape_at(task.outputs.front(), dims)) {
    for (const std::string& name : spec_.inputs)
      for (const task::TensorSpec& input : task.inputs)
        if (input.name == name) inputs_.push_back(task::shape_at(input, dims));
  }

  Enqueue make() {
    const std::string& op = spec_.op;
    if (op == "relu") return activation(CUDNN_ACTIVATION_RELU);
    if (op == "sigmoid") return activation(CUDNN_ACTIVATION_SIGMOID);
    if (op == "tanh") return activation(CUDNN_ACTIVATION_TANH);
    if (op == "softmax") return softmax();
    if (op == "max_pool") return pooling(CUDNN_POOLING_MAX);
    if (op == "average_pool") return pooling(CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING);
    if (op == "convolution") return convolution();
    return sum();
  }

  std::shared_ptr<device::GpuMemory> workspace() const { return workspace_; }

 private:
  Enqueue activation(cudnnActivationMode_t mode) {
    cudnnActivationDescriptor_t what = nullptr;
    check(api().cudnnCreateActivationDescriptor(&what), "making a descriptor");
    check(api().cudnnSetActivationDescriptor(what, mode, CUDNN_PROPAGATE_NAN, 0), "describing an activation");
    const cudnnTensorDescriptor_t x = tensor({1, 1, 1, product(inputs_[0], 0, inputs_[0].size())});
    return [=](const std::vector<const void*>& in, void* out) {
      check(api().cudnnActivationForward(handle(), what, &kOne, x, in[0], &kZero, x, out), "an activation");
    };
  }

  Enqueue softmax() {
    const std::vector<std::int64_t>& shape = inputs_[0];
    const std::size_t axis = static_cast<std::size_t>(spec_.axes.front());
    const cudnnTensorDescriptor_t x = tensor(
        {product(shape, 0, axis), product(shape, axis, axis + 1), product(shape, axis + 1, shape.size()), 1});
    return [=](const std::vector<const void*>& in, void* out) {
      check(api().cudnnSoftmaxForward(handle(), CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &kOne, x,
                                      in[0], &kZero, x, out),
            "softmax");
    };
  }

  // What cuDNN would write must be what the task has.
  void expect(const Shape& shape) const {
    if (shape != padded(output_))
      throw Error("cuDNN's output is " + text(shape) + ", the task's " + text(padded(output_)));
  }

  Enqueue pooling(cudnnPoolingMode_t mode) {
    cudnnPoolingDescriptor_t what = nullptr;
    check(api().cudnnCreatePoolingDescriptor(&what), "making a descriptor");
    check(api().cudnnSetPooling2dDescriptor(what, mode, CUDNN_PROPAGATE_NAN, spec_.window[0], spec_.window[1],
                                            spec_.padding[0], spec_.padding[1], spec_.stride[0],
                                            spec_.stride[1]),
          "describing a pooling");
    const cudnnTensorDescriptor_t x = tensor(padded(inputs_[0]));
    Shape shape{};
    check(api().cudnnGetPooling2dForwardOutputDim(what, x, &shape[0], &shape[1], &shape[2], &shape[3]),
          "the output of a pooling");
    expect(shape);
    const cudnnTensorDescriptor_t y = tensor(shape);
    return [=](const std::vector<const void*>& in, void* out) {
      check(api().cudnnPoolingForward(handle(), what, &kOne, x, in[0], &kZero, y, out), "a pooling");
    };
  }

  void need(std::size_t bytes) { workspace_ = std::make_shared<device::GpuMemory>(bytes); }
  void* scratch() const { return reinterpret_cast<void*>(workspace_->address()); }

  Enqueue sum() {
    cudnnReduceTensorDescriptor_t what = nullptr;
    check(api().cudnnCreateReduceTensorDescriptor(&what), "making a descriptor");
    check(api().cudnnSetReduceTensorDescriptor(what, CUDNN_REDUCE_TENSOR_ADD, CUDNN_DATA_FLOAT,
                                               CUDNN_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_NO_INDICES,
                                               CUDNN_32BIT_INDICES),
          "describing a sum");
    std::vector<std::int64_t> left = inputs_[0];
    for (std::size_t i = 0; i < left.size(); ++i)
      if (spec_.axes.empty() ||
          std::find(spec_.axes.begin(), spec_.axes.end(), static_cast<int>(i)) != spec_.axes.end())
        left[i] = 1;
    if (product(left, 0, left.size()) != product(output_, 0, output_.size()))
      throw Error("the sum leaves " + text(padded(left)) + ", the task's output is " + text(padded(output_)));
    const cudnnTensorDescriptor_t x = tensor(padded(inputs_[0])), y = tensor(padded(left));
    std::size_t bytes = 0;
    check(api().cudnnGetReductionWorkspaceSize(handle(), what, x, y, &bytes), "the workspace of a sum");
    need(bytes);
    void* const memory = scratch();
    return [=](const std::vector<const void*>& in, void* out) {
      check(
          api().cudnnReduceTensor(handle(), what, nullptr, 0, memory, bytes, &kOne, x, in[0], &kZero, y, out),
          "a sum");
    };
  }

  Enqueue convolution() {
    cudnnConvolutionDescriptor_t what = nullptr;
    check(api().cudnnCreateConvolutionDescriptor(&what), "making a descriptor");
    check(api().cudnnSetConvolution2dDescriptor(what, spec_.padding[0], spec_.padding[1], spec_.stride[0],
                                                spec_.stride[1], spec_.dilation[0], spec_.dilation[1],
                                                CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
          "describing a convolution");
    // The default lets Ampere and later take TF32.
    check(api().cudnnSetConvolutionMathType(what, strict_ ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH), "its math");
    const Shape weights = padded(inputs_[1]);
    cudnnFilterDescriptor_t w = nullptr;
    check(api().cudnnCreateFilterDescriptor(&w), "making a descriptor");
    check(api().cudnnSetFilter4dDescriptor(w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, weights[0], weights[1],
                                           weights[2], weights[3]),
          "describing weights");
    const cudnnTensorDescriptor_t x = tensor(padded(inputs_[0]));
    Shape shape{};
    check(api().cudnnGetConvolution2dForwardOutputDim(what, x, w, &shape[0], &shape[1], &shape[2], &shape[3]),
          "the output of a convolution");
    expect(shape);
    const cudnnTensorDescriptor_t y = tensor(shape);
    std::array<cudnnConvolutionFwdAlgoPerf_t, kMostAlgorithms> found{};
    int count = 0;
    check(api().cudnnFindConvolutionForwardAlgorithm(handle(), x, w, what, y, kMostAlgorithms, &count,
                                                     found.data()),
          "looking for an algorithm");
    const auto end = found.begin() + count;
    // The fastest first. They are tried with tensor cores too, whatever the descriptor says.
    const auto best = std::find_if(found.begin(), end, [&](const cudnnConvolutionFwdAlgoPerf_t& a) {
      const bool plain = a.mathType == CUDNN_FMA_MATH || a.mathType == CUDNN_DEFAULT_MATH;
      return a.status == CUDNN_STATUS_SUCCESS && (plain || !strict_);
    });
    if (best == end) throw Error("cuDNN has no algorithm for this convolution");
    const cudnnConvolutionFwdAlgo_t algorithm = best->algo;
    flags_["algorithm"] = std::to_string(static_cast<int>(algorithm));
    if (!strict_) check(api().cudnnSetConvolutionMathType(what, best->mathType), "its math");
    std::size_t bytes = 0;
    check(api().cudnnGetConvolutionForwardWorkspaceSize(handle(), x, w, what, y, algorithm, &bytes),
          "the workspace of a convolution");
    need(bytes);
    void* const memory = scratch();
    return [=](const std::vector<const void*>& in, void* out) {
      check(api().cudnnConvolutionForward(handle(), &kOne, x, in[0], w, in[1], what, algorithm, memory, bytes,
                                          &kZero, y, out),
            "a convolution");
    };
  }

  const task::CudnnSpec& spec_;
  bool strict_;
  std::map<std::string, std::string>& flags_;
  std::vector<std::int64_t> output_;
  std::vector<std::vector<std::int64_t> > inputs_;  // in the spec's order
  std::shared_ptr<device::GpuMemory> workspace_;
};

}  // namespace

CudnnOperator make_cudnn_operator(const task::Task& task, const task::Dims& dims, bool strict,
                                  std::map<std::string, std::string>& flags) {
  Maker maker(task, dims, strict, flags);
  Enqueue enqueue = maker.make();
  return {std::move(enqueue), maker.workspace()};
}

}  // namespace warpsmith::measure
