// What an answer of the driver says of the candidate that ran last.
#pragma once

#include <cuda.h>

#include "warpsmith/device/gpu.h"

namespace warpsmith::device {

// Of an error's number, which need not be one that CUDA has.
inline Verdict verdict_of(int cuda_error) {
  switch (cuda_error) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return Verdict::kOutOfMemory;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_NOT_FOUND:
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
    case CUDA_ERROR_INVALID_CLUSTER_SIZE:
      return Verdict::kLaunchError;
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
      return Verdict::kOutOfBounds;
    case CUDA_ERROR_LAUNCH_TIMEOUT:
      return Verdict::kTimeout;
    default:
      return Verdict::kCrash;
  }
}

// Whether a context is of no use after that: not where the call alone was refused.
inline bool loses_context(Verdict of_error) {
  return of_error != Verdict::kOutOfMemory && of_error != Verdict::kLaunchError;
}

GpuOutcome outcome_of(CUresult result);

}  // namespace warpsmith::device
