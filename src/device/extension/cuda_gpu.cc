#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "../gpu/fill.h"
#include "kernel_trace.h"
#include "warpsmith/base/error.h"
#include "warpsmith/device/extension_child.h"

namespace warpsmith::device {

namespace {

// Contexts of an H100 come in two kinds: a launch costs 1.82 to 1.88 us in some and 2.00 to 2.10 us in
// others, with eight of each seen. Opening one takes some 0.2 s, and others wait for the GPU meanwhile.
constexpr double kQuick = 1.06;     // times the least: of the quick kind
constexpr int kFewestContexts = 2;  // where no other context is known
constexpr int kMostContexts = 3;

#define WARPSMITH_TEXT(x) #x
#define WARPSMITH_NAME(x) WARPSMITH_TEXT(x)  // after cuda.h has turned cuMemAlloc into cuMemAlloc_v2
// The formatter never agrees with itself on these lines.
// clang-format off
#define WARPSMITH_FUNCTIONS(X) \
  X(cuInit) X(cuGetErrorName) X(cuGetErrorString) X(cuDeviceGet) X(cuDevicePrimaryCtxRetain) \
  X(cuDevicePrimaryCtxRelease) X(cuCtxSetCurrent) X(cuCtxSetLimit) X(cuCtxSynchronize) X(cuMemAlloc) \
  X(cuMemFree) X(cuMemsetD8Async) X(cuMemsetD16Async) X(cuMemsetD32Async) X(cuMemsetD2D32Async) \
  X(cuMemcpyDtoDAsync) X(cuEventCreate) X(cuEventRecord) X(cuEventElapsedTime) \
  X(cuMemImportFromShareableHandle) X(cuMemAddressReserve) X(cuMemMap) X(cuMemSetAccess) \
  X(cuMemRelease) X(cuMemUnmap) X(cuMemAddressFree) X(cuIpcOpenMemHandle) X(cuIpcCloseMemHandle) \
  X(cuThreadExchangeStreamCaptureMode)
// clang-format on

// Called by addresses that were looked up before the candidate was there: what it defines under these names
// changes nothing here.
struct Calls {
#define WARPSMITH_POINTER(name) decltype(&::name) name = nullptr;
  WARPSMITH_FUNCTIONS(WARPSMITH_POINTER)
#undef WARPSMITH_POINTER
};

class CudaGpu : public ExtensionGpu {
 public:
  void open() override {
    void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) throw Error(std::string("there is no NVIDIA driver here: ") + ::dlerror());
    const char* missing = nullptr;
#define WARPSMITH_LOAD(name)                                                               \
  cu_.name = reinterpret_cast<decltype(cu_.name)>(::dlsym(library, WARPSMITH_NAME(name))); \
  if (cu_.name == nullptr) missing = WARPSMITH_NAME(name);
    WARPSMITH_FUNCTIONS(WARPSMITH_LOAD)
#undef WARPSMITH_LOAD
    if (missing != nullptr) throw Error(std::string("the NVIDIA driver is too old: it has no ") + missing);
    must(cu_.cuInit(0), "the NVIDIA driver does not start");
    must(cu_.cuDeviceGet(&device_, 0), "cannot open the GPU");
    open_context();
    trace_.open();
  }

  double choose_context(double* least_ns) override {
    const bool any = *least_ns < 0;
    const int fewest = *least_ns > 0 ? 1 : kFewestContexts;
    for (int contexts = 1;; ++contexts) {
      const double ns = launch_ns();
      if (any || ns <= 0) return ns;
      *least_ns = *least_ns > 0 ? std::min(*least_ns, ns) : ns;
      if ((contexts >= fewest && ns <= kQuick * *least_ns) || contexts == kMostContexts) return ns;
      must(cu_.cuDevicePrimaryCtxRelease(device_), "cannot close a context on the GPU");
      open_context();
    }
  }

  int map(int fd, const void* handle, std::uint64_t bytes, void** address) override {
    CUdeviceptr at = 0;
    if (fd < 0) {
      CUipcMemHandle ipc;
      std::memcpy(&ipc, handle, sizeof ipc);
      const CUresult opened = cu_.cuIpcOpenMemHandle(&at, ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
      *address = reinterpret_cast<void*>(at);
      if (opened == CUDA_SUCCESS) mapped_[at] = 0;
      return opened;
    }
    CUmemGenericAllocationHandle memory = 0;
    void* const as_handle = reinterpret_cast<void*>(static_cast<std::uintptr_t>(fd));
    CUresult result =
        cu_.cuMemImportFromShareableHandle(&memory, as_handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (result != CUDA_SUCCESS) return result;
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = 0;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    result = cu_.cuMemAddressReserve(&at, bytes, 0, 0, 0);
    if (result == CUDA_SUCCESS) result = cu_.cuMemMap(at, bytes, 0, memory, 0);
    if (result == CUDA_SUCCESS) result = cu_.cuMemSetAccess(at, bytes, &access, 1);
    cu_.cuMemRelease(memory);
    *address = reinterpret_cast<void*>(at);
    if (result == CUDA_SUCCESS) mapped_[at] = bytes;
    return result;
  }

  int unmap(void* address) override {
    const auto found = mapped_.find(reinterpret_cast<CUdeviceptr>(address));
    if (found == mapped_.end()) return CUDA_ERROR_INVALID_VALUE;
    const auto [at, bytes] = *found;
    mapped_.erase(found);
    if (bytes == 0) return cu_.cuIpcCloseMemHandle(at);
    const CUresult result = cu_.cuMemUnmap(at, bytes);
    return result == CUDA_SUCCESS ? cu_.cuMemAddressFree(at, bytes) : result;
  }

  int allocate(std::uint64_t bytes, void** address) override {
    CUdeviceptr at = 0;
    // A capture would forbid it.
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    cu_.cuThreadExchangeStreamCaptureMode(&mode);
    const CUresult result = cu_.cuMemAlloc(&at, bytes);
    cu_.cuThreadExchangeStreamCaptureMode(&mode);
    *address = reinterpret_cast<void*>(at);
    return result;
  }

  int release(void* address) override { return cu_.cuMemFree(reinterpret_cast<CUdeviceptr>(address)); }

  int fill(void* at, std::uint64_t pattern, std::uint32_t width, std::uint64_t count) override {
    return fill_elements(cu_, reinterpret_cast<CUdeviceptr>(at), width * count, pattern, width);
  }

  int copy(void* to, const void* from, std::uint64_t bytes) override {
    if (bytes == 0) return 0;
    return cu_.cuMemcpyDtoDAsync(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from),
                                 bytes, nullptr);
  }
  int synchronize() override { return cu_.cuCtxSynchronize(); }
  int mark(int which) override { return cu_.cuEventRecord(marks_[which], nullptr); }
  std::int64_t ns_between_marks() override {
    float ms = 0;
    if (cu_.cuEventElapsedTime(&ms, marks_[0], marks_[1]) != CUDA_SUCCESS) return 0;
    return static_cast<std::int64_t>(static_cast<double>(ms) * 1e6);
  }

  std::string kernels_of(const std::function<void()>& work) override { return trace_.of(work); }

  std::string words(int error) const override {
    const char *name = nullptr, *text = nullptr;
    cu_.cuGetErrorName(static_cast<CUresult>(error), &name);
    cu_.cuGetErrorString(static_cast<CUresult>(error), &text);
    return std::string(name != nullptr ? name : "unknown CUDA error") +
           (text != nullptr ? std::string(": ") + text : "");
  }

 private:
  void open_context() {
    CUcontext context = nullptr;
    must(cu_.cuDevicePrimaryCtxRetain(&context, device_), "cannot open a context on the GPU");
    must(cu_.cuCtxSetCurrent(context), "cannot use the GPU's context");
    (void)cu_.cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 0);  // the least there is: nobody reads it
    for (CUevent& event : marks_)
      must(cu_.cuEventCreate(&event, CU_EVENT_DEFAULT), "cannot make a GPU event");
  }

  // Of a launch behind another, in nanoseconds: the GPU is held up until all are enqueued, by fills of much
  // memory. 0: there is no room for these.
  double launch_ns() {
    constexpr std::uint64_t kBytes = 64 << 20;
    constexpr int kHolds = 40, kLaunches = 200, kRows = 3;
    void* memory = nullptr;
    if (allocate(kBytes, &memory) != 0) return 0;
    double row_ns[kRows];
    for (double& ns : row_ns) {
      for (int i = 0; i < kHolds; ++i) (void)fill(memory, 0, 1, kBytes);
      (void)mark(0);
      for (int i = 0; i < kLaunches; ++i) (void)fill(memory, 0, 1, 1);
      (void)mark(1);
      (void)synchronize();
      ns = static_cast<double>(ns_between_marks()) / kLaunches;
    }
    (void)release(memory);
    std::sort(row_ns, row_ns + kRows);
    return row_ns[kRows / 2];
  }

  void must(CUresult result, const char* doing) const {
    if (result != CUDA_SUCCESS) throw Error(std::string(doing) + ": " + words(result));
  }

  // Bytes by address; 0: opened by a handle.
  std::map<CUdeviceptr, std::uint64_t> mapped_;
  Calls cu_;
  CUdevice device_ = 0;
  CUevent marks_[2] = {};
  KernelTrace trace_;
};

}  // namespace

std::unique_ptr<ExtensionGpu> open_cuda_gpu() { return std::make_unique<CudaGpu>(); }

}  // namespace warpsmith::device
