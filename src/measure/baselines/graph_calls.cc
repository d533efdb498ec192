#include "graph_calls.h"

namespace warpsmith::measure {

namespace {

constexpr double kTimeout = 60;  // seconds

void wait_for(const device::Gpu& gpu) {
  if (const device::GpuOutcome done = gpu.wait(kTimeout); !done.ok())
    throw device::GpuError("the graph on the GPU: " + done.detail, done);
}

}  // namespace

const device::GpuStream& CaptureStreams::at(std::size_t number) {
  while (streams_.size() <= number) streams_.push_back(std::make_unique<device::GpuStream>());
  return *streams_[number];
}

GraphCalls::GraphCalls(const device::Gpu& gpu, CaptureStreams& streams, const Reference& reference,
                       const task::Dims& dims, const GpuAddresses& inputs) {
  wait_for(gpu);  // the operands' values, on the default stream
  for (std::size_t set = 0; set < inputs.size(); ++set) {
    const device::GpuStream& stream = streams.at(set);
    Reference::Calls& calls = calls_.emplace_back(reference.bind(dims, {inputs[set]}));
    const OnTorchStream on(stream.handle());
    calls.run(0, 1);  // what is needed for the first time: memory, kernels, handles of libraries
    stream.wait();
    graphs_.emplace_back(stream, [&] { calls.run(0, 1); });
  }
  for (const device::GpuGraph& graph : graphs_) graph.launch();  // the first launch brings it to the GPU
  wait_for(gpu);
}

void GraphCalls::run(int first, int count) {
  for (int call = first; call < first + count; ++call) graphs_[static_cast<std::size_t>(call)].launch();
}

std::vector<std::span<const std::byte>> GraphCalls::output_memory(int first, int count) const {
  std::vector<std::span<const std::byte>> memory;
  for (int call = first; call < first + count; ++call)
    for (const std::span<const std::byte> output : calls_[static_cast<std::size_t>(call)].output_memory())
      memory.push_back(output);
  return memory;
}

std::vector<OutputValues> GraphCalls::outputs(int call) const {
  return calls_[static_cast<std::size_t>(call)].outputs(0);
}

}  // namespace warpsmith::measure
