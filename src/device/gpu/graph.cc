#include "warpsmith/device/gpu_graph.h"

#include <utility>

#include "driver.h"
#include "warpsmith/device/gpu.h"

namespace warpsmith::device {

namespace {

CUstream as_stream(void* stream) { return static_cast<CUstream>(stream); }

// A recorded graph until it is an executable one.
class Recording {
 public:
  Recording(CUstream stream, const std::function<void()>& enqueue) {
    check(driver().cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED),
          "cannot begin to record a graph");
    try {
      enqueue();
    } catch (...) {
      driver().cuStreamEndCapture(stream, &graph_);
      destroy();
      throw;
    }
    check(driver().cuStreamEndCapture(stream, &graph_), "the work cannot be recorded in a graph");
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() { destroy(); }
  CUgraph graph() const { return graph_; }

 private:
  void destroy() {
    if (graph_ != nullptr && !gpu_is_lost()) driver().cuGraphDestroy(graph_);
    graph_ = nullptr;
  }
  CUgraph graph_ = nullptr;
};

}  // namespace

GpuStream::GpuStream() {
  CUstream stream = nullptr;
  check(driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cannot make a GPU stream");
  stream_ = stream;
}
GpuStream::GpuStream(GpuStream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
GpuStream::~GpuStream() {
  if (stream_ != nullptr && !gpu_is_lost()) driver().cuStreamDestroy(as_stream(stream_));
}
void GpuStream::wait() const { check(driver().cuStreamSynchronize(as_stream(stream_)), "on the GPU"); }

GpuGraph::GpuGraph(const GpuStream& stream, const std::function<void()>& enqueue) {
  const Recording recording(as_stream(stream.handle()), enqueue);
  check(driver().cuGraphGetNodes(recording.graph(), nullptr, &nodes_), "cannot count a graph's nodes");
  CUgraphExec executable = nullptr;
  check(driver().cuGraphInstantiate(&executable, recording.graph(), 0), "cannot make a graph executable");
  executable_ = executable;
}
GpuGraph::GpuGraph(GpuGraph&& other) noexcept
    : executable_(std::exchange(other.executable_, nullptr)), nodes_(other.nodes_) {}
GpuGraph::~GpuGraph() {
  if (executable_ != nullptr && !gpu_is_lost())
    driver().cuGraphExecDestroy(static_cast<CUgraphExec>(executable_));
}
void GpuGraph::launch() const {
  check(driver().cuGraphLaunch(static_cast<CUgraphExec>(executable_), nullptr), "cannot launch a graph");
}

}  // namespace warpsmith::device
