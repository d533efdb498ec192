// Graphs as cuDNN takes them, as far as it does without a GPU; skipped where it does not load.
#include "baselines/cudnn_graph.h"

#include <gtest/gtest.h>

#include "warpsmith/base/error.h"
#include "warpsmith/measure/reference.h"
#include "warpsmith/task/task.h"

namespace warpsmith::measure {
namespace {

class CudnnGraphTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      load_torch_cuda();
    } catch (const Error& e) {
      GTEST_SKIP() << e.what();
    }
  }
};

TEST_F(CudnnGraphTest, TheDatasetsOperatorsAreTaken) {
  Diagnostics diagnostics;
  int taken = 0;
  for (const task::Task& task : task::load_tasks(WARPSMITH_SOURCE_DIR "/datasets", diagnostics)) {
    if (!task.cudnn || !is_graph_operator(task.cudnn->op)) continue;
    for (const auto* shapes : {&task.timing, &task.hidden})
      for (const task::Dims& dims : *shapes) EXPECT_NO_THROW(CudnnGraph(graph_shape(task, dims))) << task.id;
    ++taken;
  }
  EXPECT_GE(taken, 10);
}

TEST_F(CudnnGraphTest, EveryStepIsKnown) {
  for (const std::string op :
       {"relu", "sigmoid", "tanh", "gelu", "gelu_tanh", "swish", "exp", "sqrt", "rsqrt", "abs", "neg"}) {
    const GraphTensor in = {.kind = GraphTensor::Kind::kInput, .dims = {1, 4, 8}, .strides = {32, 8, 1}};
    GraphTensor out = in;
    out.kind = GraphTensor::Kind::kOutput;
    EXPECT_NO_THROW(CudnnGraph({{in, out}, {{op, {0}, 1}}})) << op;
  }
  for (const std::string op : {"add", "sub", "mul", "div", "max", "min"}) {
    const GraphTensor in = {.kind = GraphTensor::Kind::kInput, .dims = {1, 4, 8}, .strides = {32, 8, 1}};
    const GraphTensor number = {
        .kind = GraphTensor::Kind::kNumber, .dims = {1, 1, 1}, .strides = {1, 1, 1}, .number = 2};
    GraphTensor out = in;
    out.kind = GraphTensor::Kind::kOutput;
    EXPECT_NO_THROW(CudnnGraph({{in, number, out}, {{op, {0, 1}, 2}}})) << op;
  }
}

TEST_F(CudnnGraphTest, WhatCudnnRefusesIsToldInItsWords) {
  const GraphTensor in = {.kind = GraphTensor::Kind::kInput, .dims = {1, 4, 8}, .strides = {32, 8, 1}};
  GraphTensor out = in;
  out.kind = GraphTensor::Kind::kOutput;
  try {
    const CudnnGraph graph({{in, in, out}, {{"matmul", {0, 1}, 2}}});  // 4 x 8 by 4 x 8
    FAIL() << "it was taken";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("cuDNN, describing an operation: CUDNN_STATUS_BAD_PARAM"),
              std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace warpsmith::measure
