// Work recorded once and launched many times: CUDA graphs, by way of the driver.
#pragma once

#include <cstddef>
#include <functional>

namespace warpsmith::device {

// A stream beside the default one, for recording: it waits for nothing of the default stream, nor that for
// it. Move-only.
class GpuStream {
 public:
  GpuStream();  // throws GpuError
  GpuStream(GpuStream&& other) noexcept;
  GpuStream& operator=(GpuStream&&) = delete;
  ~GpuStream();
  void* handle() const { return stream_; }  // a CUstream
  void wait() const;                        // for all that was enqueued on it; throws GpuError

 private:
  void* stream_ = nullptr;
};

// What `enqueue` puts on `stream`, with the addresses that it has then: they must be good for as long as it
// is launched. Whatever `enqueue` needs for the first time (memory, kernels that are loaded when they are
// first launched, a library's handle) should have been had before: run it once outside. Memory may be asked
// of the driver meanwhile (the recording is "relaxed"). Throws GpuError where the work cannot be recorded,
// and what `enqueue` throws; then nothing is left being recorded.
class GpuGraph {
 public:
  GpuGraph(const GpuStream& stream, const std::function<void()>& enqueue);
  GpuGraph(GpuGraph&& other) noexcept;
  GpuGraph& operator=(GpuGraph&&) = delete;
  ~GpuGraph();
  std::size_t nodes() const { return nodes_; }
  void launch() const;  // enqueues it on the default stream; throws GpuError

 private:
  void* executable_ = nullptr;
  std::size_t nodes_ = 0;
};

}  // namespace warpsmith::device
