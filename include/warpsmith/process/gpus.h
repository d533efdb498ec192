// NVIDIA GPUs of this machine: which there are, what type each is, and which of them we may use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace warpsmith::process {

struct Gpu {
  std::string name, uuid, driver;  // "NVIDIA H200", "GPU-1f0c…", "570.86.15"
  int index = 0;                   // as nvidia-smi counts them
  std::uint64_t memory_bytes = 0;  // 0: not known
  int major = 0, minor = 0;        // compute capability; 0.0: not known
  bool mig = false;                // it is cut into slices (MIG mode), which are no GPU of its type
};

// By NVML (libnvidia-ml.so.1, loaded for the call), else by nvidia-smi. Empty where there is neither, in
// microseconds, and where they do not work: `problem`, if given, then says what the driver said. Never
// throws.
//
// The environment variable WARPSMITH_NVML names another library with NVML's functions, or `nvidia-smi`; where
// it is empty no GPU is seen.
std::vector<Gpu> nvidia_gpus(std::string* problem = nullptr);

// Those of `gpus` that a process may use whose CUDA_VISIBLE_DEVICES is `visible` (nothing: all), in its
// order: indices, or UUIDs or their beginnings, up to the first that is neither. Indices mean nvidia-smi's
// order. Without those in MIG mode: what CUDA makes of one is a slice.
std::vector<Gpu> usable_gpus(const std::vector<Gpu>& gpus, const std::optional<std::string>& visible);
std::vector<Gpu> usable_gpus();  // of this machine, by this process's environment

// The GPU type of a device's name, as the words of `device` in workflows: "H200" of "NVIDIA H200", "A100" of
// "NVIDIA A100-SXM4-40GB", "RTX3090" of "NVIDIA GeForce RTX 3090"; also of a GRES type such as "rtx_3090". An
// identifier for every name, of models that are not known as well; "" for slices and for an empty name.
std::string gpu_type_of(std::string_view name);
// The same for models that are known; else "".
std::string known_gpu_type(std::string_view name);
bool is_gpu_slice(std::string_view name);  // "nvidia_a100_1g.5gb": a part of a GPU

// What a compiler makes a binary for, of a compute capability: "sm_90a", "sm_100a", "sm_89"; "" of 0.0.
std::string compile_target(int major, int minor);
// Whether a binary for `target` runs on a GPU whose compile_target() is `device`: plain targets on later ones
// of their generation, `a` forms on their own alone.
bool runs_on(std::string_view target, std::string_view device);

}  // namespace warpsmith::process
