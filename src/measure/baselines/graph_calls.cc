#include "graph_calls.h"

namespace warpsmith::measure {

namespace {

constexpr double kTimeout = 60;  // seconds

void wait_for(const device::Gpu& gpu) {
  if (const device::GpuOutcome done = gpu.wait(kTimeout); !done.ok())
    throw device::GpuError("the graph on the GPU: " + done.detail, done);
}

}  // namespace

GraphCalls::GraphCalls(const device::Gpu& gpu, const device::GpuStream& stream, const Reference& reference,
                       const task::Dims& dims, const GpuAddresses& inputs) {
  wait_for(gpu);  // the operands' values, on the default stream
  const OnTorchStream on(stream.handle());
  for (const auto& operands : inputs) {
    Reference::Calls& calls = calls_.emplace_back(reference.bind(dims, {operands}));
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

std::vector<Comparison> GraphCalls::compare(int call, const Reference::Calls& right,
                                            const std::vector<double>& bounds) const {
  return right.compare(0, calls_[static_cast<std::size_t>(call)], 0, bounds);
}

}  // namespace warpsmith::measure
