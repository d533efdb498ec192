// How tasks become graphs of cuDNN's: numbers alone, no library.
#include "baselines/cudnn_graph_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plain_task.h"
#include "warpsmith/base/error.h"

namespace warpsmith::measure {
namespace {

using Kind = GraphTensor::Kind;
using Sizes = std::vector<std::int64_t>;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr task::Dtype kFloat = task::Dtype::kFloat32;

task::Task a_task(const std::vector<std::vector<std::string>>& inputs, const std::vector<std::string>& output,
                  task::CudnnSpec spec) {
  std::vector<task::TensorSpec> specs;
  for (const auto& shape : inputs)
    specs.push_back(tensor("in" + std::to_string(specs.size()), kFloat, shape));
  task::Task task = make_task("", std::move(specs), {tensor("out", kFloat, output)});
  task.cudnn = std::move(spec);
  return task;
}

// "input 0 [1, 2, 3] / [6, 3, 1]"
std::string told(const GraphTensor& tensor) {
  const auto list = [](const Sizes& sizes) {
    std::string text;
    for (const std::int64_t size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
    return "[" + text + "]";
  };
  const std::string kind = tensor.kind == Kind::kInput     ? "input " + std::to_string(tensor.input)
                           : tensor.kind == Kind::kOutput  ? "output"
                           : tensor.kind == Kind::kBetween ? "between"
                                                           : "number " + std::to_string(tensor.number);
  return kind + " " + list(tensor.dims) + " / " + list(tensor.strides);
}
std::vector<std::string> told(const GraphShape& shape) {
  std::vector<std::string> lines;
  for (const GraphTensor& tensor : shape.tensors) lines.push_back(told(tensor));
  for (const GraphNode& node : shape.nodes) {
    lines.push_back(node.op);
    for (const std::size_t from : node.from) lines.back() += " " + std::to_string(from);
    lines.back() += " -> " + std::to_string(node.to);
  }
  return lines;
}

const task::Dims kDims = {{"B", 2}, {"M", 3}, {"N", 5}, {"K", 7}};

TEST(CudnnGraphShape, AMatrixProductHasABatch) {
  const task::CudnnSpec spec = {.op = "matmul", .inputs = {"in0", "in1"}};
  EXPECT_THAT(told(graph_shape(a_task({{"M", "K"}, {"K", "N"}}, {"M", "N"}, spec), kDims)),
              ElementsAre("input 0 [1, 3, 7] / [21, 7, 1]", "input 1 [1, 7, 5] / [35, 5, 1]",
                          "output [1, 3, 5] / [15, 5, 1]", "matmul 0 1 -> 2"));
  EXPECT_THAT(told(graph_shape(
                  a_task({{"B", "B", "M", "K"}, {"B", "B", "K", "N"}}, {"B", "B", "M", "N"}, spec), kDims)),
              ElementsAre("input 0 [4, 3, 7] / [21, 7, 1]", "input 1 [4, 7, 5] / [35, 5, 1]",
                          "output [4, 3, 5] / [15, 5, 1]", "matmul 0 1 -> 2"));
  // A square matrix by itself: two tensors, one memory.
  const task::CudnnSpec square = {.op = "matmul", .inputs = {"in0", "in0"}};
  EXPECT_THAT(told(graph_shape(a_task({{"N", "N"}}, {"N", "N"}, square), kDims)),
              ElementsAre("input 0 [1, 5, 5] / [25, 5, 1]", "input 0 [1, 5, 5] / [25, 5, 1]",
                          "output [1, 5, 5] / [25, 5, 1]", "matmul 0 1 -> 2"));
  EXPECT_THAT(
      [&] {
        graph_shape(a_task({{"M", "K"}, {"N", "K"}}, {"M", "N"}, spec), kDims);
      },
      ThrowsMessage<Error>(HasSubstr("there is no product of 3 x 7 and 5 x 7")));
  EXPECT_THAT(
      [&] {
        graph_shape(a_task({{"M", "K"}, {"K", "N"}}, {"N", "M"}, spec), kDims);
      },
      ThrowsMessage<Error>(HasSubstr("cuDNN's output is 3 x 5, the task's 5 x 3")));
}

TEST(CudnnGraphShape, ANormIsOverChannels) {
  task::CudnnSpec spec = {.op = "layer_norm", .inputs = {"in0", "in1", "in2"}};
  spec.epsilon = 0.5;
  EXPECT_THAT(
      told(graph_shape(a_task({{"B", "M", "N"}, {"N"}, {"N"}}, {"B", "M", "N"}, spec), kDims)),
      ElementsAre("input 0 [6, 5, 1, 1] / [5, 1, 5, 5]", "number 0.500000 [1, 1, 1, 1] / [1, 1, 1, 1]",
                  "input 1 [1, 5, 1, 1] / [5, 1, 5, 5]", "input 2 [1, 5, 1, 1] / [5, 1, 5, 5]",
                  "output [6, 5, 1, 1] / [5, 1, 5, 5]", "layer_norm 0 1 2 3 -> 4"));
  spec.op = "rms_norm";
  spec.inputs = {"in0", "in1"};
  EXPECT_THAT(
      told(graph_shape(a_task({{"B", "M", "N"}, {"M", "N"}}, {"B", "M", "N"}, spec), kDims)),
      ElementsAre("input 0 [2, 15, 1, 1] / [15, 1, 15, 15]", "number 0.500000 [1, 1, 1, 1] / [1, 1, 1, 1]",
                  "input 1 [1, 15, 1, 1] / [15, 1, 15, 15]", "output [2, 15, 1, 1] / [15, 1, 15, 15]",
                  "rms_norm 0 1 2 -> 3"));
  EXPECT_THAT(
      [&] {
        graph_shape(a_task({{"M", "N"}, {"M"}}, {"M", "N"}, spec), kDims);
      },
      ThrowsMessage<Error>(HasSubstr("weights of 3 are not the last dimensions of 3 x 5")));
}

TEST(CudnnGraphShape, AChainGoesThroughTensorsWithoutMemory) {
  const task::CudnnSpec spec = {.op = "pointwise",
                                .inputs = {"in0"},
                                .steps = {{.op = "add", .operand = "in1", .number = 0},
                                          {.op = "relu", .operand = "", .number = 0},
                                          {.op = "mul", .operand = "in0", .number = 0},
                                          {.op = "mul", .operand = "", .number = 2}}};
  EXPECT_THAT(told(graph_shape(a_task({{"M", "N"}, {"N"}}, {"M", "N"}, spec), kDims)),
              ElementsAre("input 0 [1, 3, 5] / [15, 5, 1]", "input 1 [1, 1, 5] / [5, 5, 1]",
                          "between [1, 3, 5] / [15, 5, 1]", "between [1, 3, 5] / [15, 5, 1]",
                          "between [1, 3, 5] / [15, 5, 1]", "number 2.000000 [1, 1, 1] / [1, 1, 1]",
                          "output [1, 3, 5] / [15, 5, 1]", "add 0 1 -> 2", "relu 2 -> 3", "mul 3 0 -> 4",
                          "mul 4 5 -> 6"));
  EXPECT_THAT(
      [&] {
        graph_shape(a_task({{"M", "N"}, {"M"}}, {"M", "N"}, spec), kDims);
      },
      ThrowsMessage<Error>(HasSubstr("`in1` of 3 cannot be repeated to 3 x 5")));
}

TEST(CudnnGraphShape, ChainsOfOtherRanks) {
  const auto dims = [](const std::vector<std::string>& data, const std::vector<std::string>& other,
                       const task::Dims& at) {
    const task::CudnnSpec spec = {
        .op = "pointwise", .inputs = {"in0"}, .steps = {{.op = "add", .operand = "in1", .number = 0}}};
    const GraphShape shape = graph_shape(a_task({data, other}, data, spec), at);
    return std::vector<Sizes>{shape.tensors[0].dims, shape.tensors[1].dims};
  };
  // A vector is cut into rows where it can be.
  EXPECT_THAT(dims({"N"}, {"N"}, {{"N", 65536}}), ElementsAre(Sizes{1, 64, 1024}, Sizes{1, 64, 1024}));
  EXPECT_THAT(dims({"N"}, {"1"}, {{"N", 192}}), ElementsAre(Sizes{1, 3, 64}, Sizes{1, 1, 1}));
  EXPECT_THAT(dims({"N"}, {"N"}, {{"N", 4099}}), ElementsAre(Sizes{1, 1, 4099}, Sizes{1, 1, 4099}));
  EXPECT_THAT(dims({"N"}, {"N"}, {{"N", 1}}), ElementsAre(Sizes{1, 1, 1}, Sizes{1, 1, 1}));
  EXPECT_THAT(dims({}, {}, kDims), ElementsAre(Sizes{1, 1, 1}, Sizes{1, 1, 1}));
  EXPECT_THAT(dims({"B", "M", "N"}, {"B", "1", "N"}, kDims), ElementsAre(Sizes{2, 3, 5}, Sizes{2, 1, 5}));
  EXPECT_THAT(dims({"K", "B", "M", "N"}, {"M", "1"}, kDims), ElementsAre(Sizes{14, 3, 5}, Sizes{1, 3, 1}));
  EXPECT_THAT(
      [&] {
        dims({"K", "B", "M", "N"}, {"K", "1", "M", "N"}, kDims);
      },
      ThrowsMessage<Error>(HasSubstr("is repeated in some of the dimensions alone")));
}

TEST(CudnnGraphShape, AlignmentIsThatOfTheAddress) {
  task::Task task =
      a_task({{"M", "N"}, {"N"}}, {"M", "N"},
             {.op = "pointwise", .inputs = {"in0"}, .steps = {{.op = "add", .operand = "in1", .number = 0}}});
  task.inputs[0].offset = task::Expression::parse("2");
  const GraphShape shape = graph_shape(task, kDims);
  EXPECT_EQ(shape.tensors[0].alignment, 8);
  EXPECT_EQ(shape.tensors[1].alignment, 16);
}

}  // namespace
}  // namespace warpsmith::measure
