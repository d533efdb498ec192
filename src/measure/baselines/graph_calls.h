// Baseline `cuda_graph`: eager's launches, captured once for each call's operands and replayed.
//
// Each call has a graph of its own, because a graph holds the addresses of its operands. (The alternative,
// one graph and copies into its operands, would time the copies.) All are captured on one stream, on which
// nothing else runs. torch's allocator keeps the memory of each stream apart, so the graphs share memory with
// nobody else. Outputs are held as long as their graph is. Temporaries go back to the allocator, and later
// graphs take the same memory, also for outputs. That is right because the calls of a row are replayed in the
// order in which they were captured: a later call's output is written after an earlier call's temporaries.
// (With a stream for each graph, the temporaries of a thousand calls filled the GPU.) torch would give
// temporaries back to the driver only where memory runs out. Then making the graphs fails, with an Error.
#pragma once

#include <memory>
#include <vector>

#include "gpu/calls.h"
#include "warpsmith/device/gpu.h"
#include "warpsmith/device/gpu_graph.h"

namespace warpsmith::measure {

class GraphCalls : public GpuCalls {
 public:
  // Runs each call once, captures it, and launches it once. `stream` must outlive torch's use of it: torch's
  // libraries keep a workspace for it. Throws Error where the reference cannot be captured.
  GraphCalls(const device::Gpu& gpu, const device::GpuStream& stream, const Reference& reference,
             const task::Dims& dims, const GpuAddresses& inputs);
  void run(int first, int count) override;
  std::vector<std::span<const std::byte>> output_memory(int first, int count) const override;
  std::vector<Comparison> compare(int call, const Reference::Calls& right,
                                  const std::vector<double>& bounds) const override;
  std::size_t nodes() const { return graphs_.front().nodes(); }

 private:
  std::vector<Reference::Calls> calls_;  // one each, with the outputs that its graph writes
  std::vector<device::GpuGraph> graphs_;
};

}  // namespace warpsmith::measure
