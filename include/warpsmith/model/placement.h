// Where a job program computes with torch, and in what type.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

namespace warpsmith::model {

// `gpu`: on the first GPU that this process sees; torch's CUDA library is loaded for that, which programs are
// not linked with. `type`: "float32", "bfloat16", or "auto": bfloat16 on a GPU, else float32. Before anything
// else of torch. Throws Error: torch is one without CUDA, or there is no GPU.
at::TensorOptions place_for(bool gpu, const std::string& type);

// Whether models are there as checkpoints give them: on the CPU in float32.
bool is_host(const at::TensorOptions& placement);

// Bytes of the GPU that are free now, what torch keeps for later included; nothing where `placement` is on
// the CPU, or where this torch does not say.
std::optional<std::uint64_t> free_memory(const at::TensorOptions& placement);

// The most bytes of the GPU that torch's allocator had at one time since the process began, without CUDA's
// context and what libraries take by themselves (NCCL's buffers).
struct PeakMemory {
  std::uint64_t tensors = 0, reserved = 0;  // reserved: what is kept for later included
};
// Nothing where `placement` is on the CPU, or where this torch does not say.
std::optional<PeakMemory> peak_memory(const at::TensorOptions& placement);

}  // namespace warpsmith::model
