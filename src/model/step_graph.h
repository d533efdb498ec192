// A GPU's work recorded once and repeated: a CUDA graph. A step of the sampler is some hundred short kernels,
// whose launches cost more than their work.
#pragma once

#include <functional>
#include <memory>

namespace warpsmith::model {

class StepGraph {
 public:
  virtual ~StepGraph() = default;
  // Runs `step` once without doing its work: what it launches is kept. Its tensors must lie where they lay.
  virtual void record(const std::function<void()>& step) = 0;
  // Does that work, once.
  virtual void replay() = 0;
};

// From the module warpsmith-cuda-graph.so beside the programs, which is linked with torch's CUDA library;
// null where it was not built.
std::unique_ptr<StepGraph> make_step_graph();

}  // namespace warpsmith::model
