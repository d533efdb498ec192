// The CUDA driver, opened when it is first asked for: nothing here is linked, so a program that can use a GPU
// starts, and says what is missing, where there is none.
#pragma once

#include <cuda.h>

#include <string>

namespace warpsmith::device {

// Functions by the names that cuda.h gives their newest forms.
// clang-format off
#define WARPSMITH_CUDA_FUNCTIONS(X)                                                         \
  X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuGetErrorString)                     \
  X(cuDeviceGet) X(cuDeviceGetCount) X(cuDeviceGetName) X(cuDeviceGetUuid)                  \
  X(cuDeviceGetAttribute) X(cuDeviceTotalMem) X(cuDevicePrimaryCtxRetain)                   \
  X(cuDevicePrimaryCtxGetState) X(cuDevicePrimaryCtxReset)                                  \
  X(cuMemGetInfo) X(cuCtxSetCurrent) X(cuCtxSetLimit) X(cuCtxSynchronize) X(cuCtxResetPersistingL2Cache)    \
  X(cuModuleLoadData) X(cuModuleUnload) X(cuModuleGetFunction) X(cuModuleGetGlobal)         \
  X(cuFuncGetAttribute) X(cuFuncSetAttribute) X(cuLaunchKernelEx)                           \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor)            \
  X(cuMemAlloc) X(cuMemFree) X(cuMemAllocHost) X(cuMemFreeHost)                             \
  X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) X(cuMemcpyDtoDAsync)                            \
  X(cuMemsetD8Async) X(cuMemsetD16Async) X(cuMemsetD32Async) X(cuMemsetD2D32Async)          \
  X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) X(cuEventQuery)                       \
  X(cuEventElapsedTime) X(cuStreamQuery)                                                    \
  X(cuStreamCreate) X(cuStreamDestroy) X(cuStreamSynchronize)                               \
  X(cuStreamBeginCapture) X(cuStreamEndCapture)                                             \
  X(cuGraphInstantiate) X(cuGraphGetNodes) X(cuGraphLaunch)                                 \
  X(cuGraphDestroy) X(cuGraphExecDestroy)                                                   \
  X(cuMemCreate) X(cuMemRelease) X(cuMemGetAllocationGranularity)                           \
  X(cuMemExportToShareableHandle) X(cuMemAddressReserve) X(cuMemAddressFree)                \
  X(cuMemMap) X(cuMemUnmap) X(cuMemSetAccess) X(cuIpcGetMemHandle)
// clang-format on
// Null where the driver is too old.
#define WARPSMITH_CUDA_NEWER_FUNCTIONS(X) X(cuFuncGetParamInfo) X(cuTensorMapEncodeTiled)

struct Driver {
#define WARPSMITH_CUDA_POINTER(name) decltype(&::name) name = nullptr;
  WARPSMITH_CUDA_FUNCTIONS(WARPSMITH_CUDA_POINTER)
  WARPSMITH_CUDA_NEWER_FUNCTIONS(WARPSMITH_CUDA_POINTER)
#undef WARPSMITH_CUDA_POINTER
};

// Opens libcuda.so.1 and calls cuInit once a process. Throws Error saying what is missing.
const Driver& driver();

// "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"
std::string error_text(CUresult result);

// Throws GpuError (warpsmith/device/gpu.h) where a call that must work did not.
void check(CUresult result, const char* doing);

}  // namespace warpsmith::device
