// One of cuDNN's graphs: its descriptors, the plans that cuDNN has for it on this GPU, and calls of them.
//
// Plans are those of heuristics mode A, the best first, then those of the fallback, as far as they can be
// built. In strict math engines that round inputs or sums to less than float32 are left out. That a matrix
// product's engine takes tensor cores says so of float32 (they would round to TF32); the engine of pointwise
// chains bears the same note, and has nothing to multiply there.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cudnn_graph_shape.h"

namespace warpsmith::measure {

class CudnnGraph {
 public:
  // Tensors and operations alone: no GPU is asked. Throws Error where cuDNN does not take them.
  explicit CudnnGraph(GraphShape shape);
  ~CudnnGraph();
  CudnnGraph(const CudnnGraph&) = delete;
  CudnnGraph& operator=(const CudnnGraph&) = delete;

  // Builds up to `most` plans for the GPU of this process. Throws NotCovered where cuDNN has none, in this
  // math.
  void make_plans(bool strict, std::size_t most);
  std::size_t plans() const;
  std::string name(std::size_t plan) const;  // "engine 7"

  // A call of a plan on operands, to be made any number of times while this lives; each enqueues. `inputs`:
  // addresses of all the task's inputs, in order. All calls share one workspace: they belong on one stream.
  // Throws Error where cuDNN refuses, here and in the call.
  std::function<void()> bind(std::size_t plan, const std::vector<void*>& inputs, void* output) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace warpsmith::measure
