// The module warpsmith-cuda-graph.so: see step_graph.h.
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "step_graph.h"

namespace {

class CudaGraph : public warpsmith::model::StepGraph {
 public:
  void record(const std::function<void()>& step) override {
    const c10::cuda::CUDAStream now = c10::cuda::getCurrentCUDAStream();
    now.synchronize();
    // The default stream cannot be recorded.
    const c10::cuda::CUDAStreamGuard other(c10::cuda::getStreamFromPool());
    graph_.capture_begin();
    step();
    graph_.capture_end();
  }
  void replay() override { graph_.replay(); }

 private:
  at::cuda::CUDAGraph graph_;
};

}  // namespace

extern "C" warpsmith::model::StepGraph* warpsmith_make_step_graph() { return new CudaGraph; }
