// Baseline `cuda_graph`: eager's launches, captured once for each call's operands and replayed.
//
// Each call has a graph of its own, because a graph holds the addresses of its operands (the alternative, one
// graph and copies into its operands, would time the copies), and a stream of its own to be captured on,
// because torch's allocator keeps the memory of each stream apart: so what one graph uses for temporaries is
// never the memory of another one's outputs. The outputs are held as long as the graph is; the memory of
// temporaries goes back to the allocator, stays with that stream, and nobody else enqueues on it. torch would
// give it back to the driver only where memory runs out, which is an Error of this process before anything is
// replayed.
#pragma once

#include <memory>
#include <vector>

#include "gpu/calls.h"
#include "warpsmith/device/gpu.h"
#include "warpsmith/device/gpu_graph.h"

namespace warpsmith::measure {

// Streams to capture on, kept over the tasks of a process: torch's libraries keep a workspace for each that
// they have seen.
class CaptureStreams {
 public:
  const device::GpuStream& at(std::size_t number);

 private:
  std::vector<std::unique_ptr<device::GpuStream>> streams_;
};

class GraphCalls : public GpuCalls {
 public:
  // Runs each call once, captures it, and launches it once. Throws Error where the reference cannot be
  // captured.
  GraphCalls(const device::Gpu& gpu, CaptureStreams& streams, const Reference& reference,
             const task::Dims& dims, const GpuAddresses& inputs);
  void run(int first, int count) override;
  std::vector<std::span<const std::byte>> output_memory(int first, int count) const override;
  std::vector<OutputValues> outputs(int call) const override;
  std::size_t nodes() const { return graphs_.front().nodes(); }

 private:
  std::vector<Reference::Calls> calls_;  // one each, with the outputs that its graph writes
  std::vector<device::GpuGraph> graphs_;
};

}  // namespace warpsmith::measure
