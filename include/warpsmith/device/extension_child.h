// The child's side of an ExtensionSession; what `warpsmith-extension` runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace warpsmith::device {

// What the child wants of a GPU. One that works on host memory stands in for it in tests. Errors of CUDA's
// are numbers other than 0.
class ExtensionGpu {
 public:
  virtual ~ExtensionGpu() = default;
  // Opens a context. Throws Error.
  virtual void open() = 0;
  // Opens other contexts in its place, until launches in one cost about as little as `*least_ns`, and keeps
  // the last. Nothing else may run on the GPU meanwhile. `*least_ns`: the least that launches cost in
  // contexts so far (0: none is known; less: any context will do), and then with these. Returns what they
  // cost in the one that is kept, in nanoseconds; 0: it is not known. Throws Error.
  virtual double choose_context(double* least_ns) = 0;
  // Memory of the parent's: by a descriptor, or, where that is -1, by the 64 bytes of a handle. What was
  // mapped before stays until it is unmapped.
  virtual int map(int fd, const void* handle, std::uint64_t bytes, void** address) = 0;
  virtual int unmap(void* address) = 0;
  virtual int allocate(std::uint64_t bytes, void** address) = 0;
  virtual int release(void* address) = 0;  // of allocate()
  virtual int fill(void* at, std::uint64_t pattern, std::uint32_t width, std::uint64_t count) = 0;
  virtual int copy(void* to, const void* from, std::uint64_t bytes) = 0;
  virtual int synchronize() = 0;    // device-wide
  virtual int mark(int which) = 0;  // an event on the default stream, 0 or 1
  virtual std::int64_t ns_between_marks() = 0;
  virtual std::string words(int error) const = 0;
  // Does the work, which waits for the GPU, and tells the kernels that it ran: "NANOSECONDS NAME\n" for each
  // name, mangled, the longest time first. Empty: that cannot be known here.
  virtual std::string kernels_of(const std::function<void()>& work) {
    work();
    return {};
  }
};

// CUDA's, by way of the driver. Throws Error where there is none.
std::unique_ptr<ExtensionGpu> open_cuda_gpu();

struct ExtensionChildOptions {
  int control_fd = -1, socket_fd = -1;
  std::filesystem::path binary;  // a shared object of tier `extension`
  bool seccomp = true;
};

// Opens the GPU, closes the sandbox, then serves requests until the parent is gone. Throws Error before the
// sandbox is closed.
[[noreturn]] void run_extension_child(const ExtensionChildOptions& options, ExtensionGpu& gpu);

}  // namespace warpsmith::device
