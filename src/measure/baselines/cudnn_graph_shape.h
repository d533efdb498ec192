// A task's operator as a graph of cuDNN's: tensors, and nodes between them. Numbers alone, nothing of cuDNN:
// cudnn_graph.h makes its descriptors of them.
//
// cuDNN wants tensors of three or four dimensions, so others are folded or padded:
//   matmul      [batch, M, K] x [batch, K, N] = [batch, M, N]; a batch of 1 where the task has none
//   norms       [rows, N, 1, 1] with weights and bias of [1, N, 1, 1], where N is all that the weights cover
//   pointwise   [batch, rows, columns]; operands have 1 where they are repeated. A vector is cut into rows:
//               cuDNN's kernels take tiles of a matrix, and most of a tile would be empty
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "warpsmith/task/task.h"

namespace warpsmith::measure {

struct GraphTensor {
  // An operand's memory; between two nodes, in no memory at all; a number that is handed over with the call.
  enum class Kind { kInput, kOutput, kBetween, kNumber };
  Kind kind = Kind::kBetween;
  std::vector<std::int64_t> dims, strides;  // strides in elements
  std::size_t input = 0;                    // kInput: which of the task's
  float number = 0;                         // kNumber
  std::int64_t alignment = 16;              // of its address, in bytes
};

struct GraphNode {
  std::string op;  // matmul, layer_norm, rms_norm, or a step's
  // By their place in GraphShape::tensors. Norms: data, epsilon, weights and perhaps bias; a step: what it is
  // applied to, and perhaps a second operand.
  std::vector<std::size_t> from;
  std::size_t to = 0;
};

struct GraphShape {
  std::vector<GraphTensor> tensors;
  std::vector<GraphNode> nodes;  // in order
};

// Whether cuDNN has this operator in its graphs alone.
bool is_graph_operator(const std::string& op);

// `task.cudnn` is set and is_graph_operator(). Throws Error where the operands' shapes do not fit it.
GraphShape graph_shape(const task::Task& task, const task::Dims& dims);

}  // namespace warpsmith::measure
