#include "warpsmith/device/gpu.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "driver.h"
#include "outcome.h"

namespace warpsmith::device {

namespace {

int attribute(CUdevice device, CUdevice_attribute which) {
  int value = 0;
  check(driver().cuDeviceGetAttribute(&value, which, device), "cannot ask the GPU what it is");
  return value;
}

std::string uuid_text(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

GpuFacts facts_of(CUdevice device) {
  const Driver& d = driver();
  GpuFacts facts;
  char name[256] = {};
  check(d.cuDeviceGetName(name, sizeof name - 1, device), "cannot ask the GPU for its name");
  facts.name = name;
  CUuuid uuid{};
  check(d.cuDeviceGetUuid(&uuid, device), "cannot ask the GPU for its UUID");
  facts.uuid = uuid_text(uuid);
  int version = 0;
  check(d.cuDriverGetVersion(&version), "cannot ask the driver for its version");
  facts.driver = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  facts.major = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  facts.minor = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  facts.sms = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  facts.smem_max = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  facts.smem_an_sm = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  facts.l2_bytes = static_cast<std::uint64_t>(attribute(device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
  std::size_t memory = 0;
  check(d.cuDeviceTotalMem(&memory, device), "cannot ask the GPU for its memory");
  facts.memory_bytes = memory;
  return facts;
}

// The device heap and the buffer of printf at their least (no candidate of tier plan has a malloc), and its
// printing little. What is least is the driver's to say, so an answer that is no is as good.
void bound_device_runtime() {
  (void)driver().cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 0);
  (void)driver().cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 0);
}

bool lost = false;

// Smaller allocations may share a block of memory, and a handle is one of the block.
constexpr std::uint64_t kWholeBlock = 4ull << 20;

// Memory with a descriptor, mapped here; nothing where the driver does not give one. Throws where there is no
// room.
std::optional<CUdeviceptr> map_exported(std::uint64_t bytes, GpuShare* share) {
  const Driver& d = driver();
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = 0;
  std::size_t grain = 0;
  if (d.cuMemGetAllocationGranularity(&grain, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) !=
          CUDA_SUCCESS ||
      grain == 0)
    return std::nullopt;
  const std::uint64_t size = (std::max<std::uint64_t>(bytes, 1) + grain - 1) / grain * grain;
  CUmemGenericAllocationHandle handle = 0;
  const CUresult made = d.cuMemCreate(&handle, size, &properties, 0);
  if (made == CUDA_ERROR_OUT_OF_MEMORY)
    check(made, fmt::format("cannot get {} bytes on the GPU", bytes).c_str());
  if (made != CUDA_SUCCESS) return std::nullopt;
  CUdeviceptr address = 0;
  CUmemAccessDesc access{};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  int fd = -1;
  const bool exported = d.cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                                       0) == CUDA_SUCCESS;
  const bool reserved = exported && d.cuMemAddressReserve(&address, size, 0, 0, 0) == CUDA_SUCCESS;
  const bool mapped = reserved && d.cuMemMap(address, size, 0, handle, 0) == CUDA_SUCCESS;
  const bool usable = mapped && d.cuMemSetAccess(address, size, &access, 1) == CUDA_SUCCESS;
  d.cuMemRelease(handle);  // the mapping and the descriptor keep it
  if (usable) {
    share->fd = fd;
    share->bytes = size;
    return address;
  }
  if (mapped) d.cuMemUnmap(address, size);
  if (reserved) d.cuMemAddressFree(address, size);
  if (exported) ::close(fd);
  return std::nullopt;
}

CUevent as_event(void* event) { return static_cast<CUevent>(event); }

}  // namespace

bool gpu_is_lost() { return lost; }

GpuOutcome outcome_of(CUresult result) {
  if (result == CUDA_SUCCESS) return {};
  GpuOutcome outcome;
  outcome.detail = error_text(result);
  outcome.verdict = verdict_of(result);
  outcome.context_lost = loses_context(outcome.verdict);
  lost = lost || outcome.context_lost;
  return outcome;
}

namespace {

CUdevice first_device() {
  const Driver& d = driver();
  int count = 0;
  if (const CUresult result = d.cuDeviceGetCount(&count); result != CUDA_SUCCESS || count == 0)
    throw Error("no GPU can be seen from here");
  CUdevice device = 0;
  check(d.cuDeviceGet(&device, 0), "cannot open the GPU");
  return device;
}

}  // namespace

bool Gpu::has_context() {
  unsigned flags = 0;
  int active = 0;
  check(driver().cuDevicePrimaryCtxGetState(first_device(), &flags, &active),
        "cannot ask for the GPU's context");
  return active != 0;
}

void Gpu::close_context() {
  check(driver().cuDevicePrimaryCtxReset(first_device()), "cannot close the GPU's context");
}

Gpu::Gpu() {
  const Driver& d = driver();
  const CUdevice device = first_device();
  CUcontext context = nullptr;
  check(d.cuDevicePrimaryCtxRetain(&context, device), "cannot open a context on the GPU");
  check(d.cuCtxSetCurrent(context), "cannot use the GPU's context");
  bound_device_runtime();
  facts_ = facts_of(device);
}

GpuOutcome Gpu::wait(double timeout_s, double busy_s) const {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  for (;;) {
    const CUresult result = driver().cuStreamQuery(nullptr);
    if (result != CUDA_ERROR_NOT_READY) return outcome_of(result);
    const double waited = std::chrono::duration<double>(Clock::now() - begin).count();
    if (waited > timeout_s) {
      lost = true;
      return {Verdict::kTimeout, fmt::format("the GPU was not done after {:.3g} s", timeout_s), true};
    }
    if (waited > busy_s) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void Gpu::settle(double timeout_s, double busy_s) const {
  if (const GpuOutcome done = wait(timeout_s, busy_s); !done.ok())
    throw GpuError("on the GPU: " + done.detail, done);
}

std::uint64_t Gpu::free_memory() const {
  std::size_t free = 0, all = 0;
  check(driver().cuMemGetInfo(&free, &all), "cannot ask for the GPU's free memory");
  return free;
}

void Gpu::reset_persisting_l2() const {
  check(driver().cuCtxResetPersistingL2Cache(), "cannot reset the GPU's L2 cache");
}

GpuMemory::GpuMemory(std::uint64_t bytes) : bytes_(bytes) {
  CUdeviceptr address = 0;
  if (bytes > 0)
    check(driver().cuMemAlloc(&address, bytes), fmt::format("cannot get {} bytes on the GPU", bytes).c_str());
  address_ = address;
}
GpuMemory::GpuMemory(GpuMemory&& other) noexcept
    : address_(std::exchange(other.address_, 0)),
      bytes_(std::exchange(other.bytes_, 0)),
      share_(std::move(other.share_)) {}
GpuMemory& GpuMemory::operator=(GpuMemory&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  std::swap(share_, other.share_);
  return *this;
}
GpuMemory::~GpuMemory() {
  if (share_ != nullptr && share_->fd >= 0) ::close(share_->fd);
  if (address_ == 0 || lost) return;
  if (share_ != nullptr && share_->fd >= 0) {
    driver().cuMemUnmap(address_, share_->bytes);
    driver().cuMemAddressFree(address_, share_->bytes);
  } else {
    driver().cuMemFree(address_);
  }
}

GpuMemory GpuMemory::shared(std::uint64_t bytes) {
  GpuMemory memory;
  memory.bytes_ = bytes;
  memory.share_ = std::make_unique<GpuShare>();
  GpuShare& share = *memory.share_;
  const std::optional<CUdeviceptr> mapped = map_exported(bytes, &share);
  if (mapped) {
    memory.address_ = *mapped;
    return memory;
  }
  share.bytes = std::max<std::uint64_t>(bytes, kWholeBlock);
  CUdeviceptr address = 0;
  check(driver().cuMemAlloc(&address, share.bytes),
        fmt::format("cannot get {} bytes on the GPU", bytes).c_str());
  memory.address_ = address;
  CUipcMemHandle handle{};
  check(driver().cuIpcGetMemHandle(&handle, address), "cannot share memory of the GPU with another process");
  static_assert(sizeof handle == sizeof share.handle);
  std::memcpy(share.handle, &handle, sizeof handle);
  return memory;
}

PinnedMemory::PinnedMemory(std::uint64_t bytes) : bytes_(bytes) {
  void* data = nullptr;
  if (bytes > 0)
    check(driver().cuMemAllocHost(&data, bytes), fmt::format("cannot pin {} bytes", bytes).c_str());
  data_ = static_cast<std::byte*>(data);
}
PinnedMemory::PinnedMemory(PinnedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
PinnedMemory& PinnedMemory::operator=(PinnedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}
PinnedMemory::~PinnedMemory() {
  if (data_ != nullptr && !lost) driver().cuMemFreeHost(data_);
}

GpuEvent::GpuEvent() {
  CUevent event = nullptr;
  check(driver().cuEventCreate(&event, CU_EVENT_DEFAULT), "cannot make a GPU event");
  event_ = event;
}
GpuEvent::GpuEvent(GpuEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
GpuEvent::~GpuEvent() {
  if (event_ != nullptr && !lost) driver().cuEventDestroy(as_event(event_));
}
void GpuEvent::record() {
  check(driver().cuEventRecord(as_event(event_), nullptr), "cannot record a GPU event");
}
bool GpuEvent::passed() const { return driver().cuEventQuery(as_event(event_)) != CUDA_ERROR_NOT_READY; }
double GpuEvent::ns_between(const GpuEvent& start, const GpuEvent& stop) {
  float ms = 0;
  check(driver().cuEventElapsedTime(&ms, as_event(start.event_), as_event(stop.event_)),
        "cannot read the GPU's clock");
  return static_cast<double>(ms) * 1e6;
}

void upload(GpuAddress to, const void* from, std::uint64_t bytes) {
  if (bytes > 0) check(driver().cuMemcpyHtoDAsync(to, from, bytes, nullptr), "cannot copy to the GPU");
}
void download(void* to, GpuAddress from, std::uint64_t bytes) {
  if (bytes > 0) check(driver().cuMemcpyDtoHAsync(to, from, bytes, nullptr), "cannot copy from the GPU");
}
void copy(GpuAddress to, GpuAddress from, std::uint64_t bytes) {
  if (bytes > 0) check(driver().cuMemcpyDtoDAsync(to, from, bytes, nullptr), "cannot copy on the GPU");
}
void fill_bytes(GpuAddress to, std::uint8_t value, std::uint64_t bytes) {
  if (bytes > 0) check(driver().cuMemsetD8Async(to, value, bytes, nullptr), "cannot fill memory of the GPU");
}

void GpuKernel::launch(Grid grid, unsigned threads, void** arguments, unsigned smem) const {
  CUlaunchConfig config{};
  config.gridDimX = grid.x;
  config.gridDimY = grid.y;
  config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = threads;
  config.sharedMemBytes = smem;
  check(driver().cuLaunchKernelEx(&config, static_cast<CUfunction>(function_), arguments, nullptr),
        "cannot launch a kernel of the harness");
}
void GpuKernel::allow_shared_memory(std::int64_t bytes) const {
  check(driver().cuFuncSetAttribute(static_cast<CUfunction>(function_),
                                    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(bytes)),
        "cannot raise the shared memory of a kernel of the harness");
}

GpuModule::GpuModule(std::span<const std::byte> cubin) {
  CUmodule loaded = nullptr;
  check(driver().cuModuleLoadData(&loaded, cubin.data()), "cannot load the harness's kernels");
  module_ = loaded;
}
GpuModule::~GpuModule() {
  if (module_ != nullptr && !lost) driver().cuModuleUnload(static_cast<CUmodule>(module_));
}
GpuKernel GpuModule::kernel(const char* name) const {
  CUfunction function = nullptr;
  check(driver().cuModuleGetFunction(&function, static_cast<CUmodule>(module_), name), name);
  return GpuKernel(function);
}

}  // namespace warpsmith::device
