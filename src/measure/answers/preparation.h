// A task's `prepare`: what it makes of the draws of its inputs.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "torch_program.h"

namespace warpsmith::measure {

// Of a task without `prepare` it does nothing. `task` must outlive it.
class Preparation {
 public:
  // Compiles the program. Throws InvalidInput, naming task.yaml, where it does not compile or draws at random
  // itself. `place`: where it runs.
  Preparation(const task::Task& task, Place place);

  // `inputs`: those of the task, in order, contiguous at `dims`, with their draws; those that `prepare` takes
  // get its results. At Place::kGpu, for memory of the GPU, all is enqueued on the default stream. The bytes
  // are the same for equal draws, wherever in memory they lie: it runs on copies. Throws Error that names the
  // task and prepare where it fails, and where a result has another dtype, shape or number than its input.
  void run(const task::Dims& dims, const std::vector<std::span<std::byte>>& inputs, Place memory) const;

 private:
  const task::Task& task_;
  Place place_;
  TorchProgram program_;
};

}  // namespace warpsmith::measure
