// `plan` candidates for NVIDIA GPUs: source to cubin by NVRTC, in a sandboxed, killable child with a
// content-addressed cache. No GPU and no driver is needed. What of CUDA a candidate may use:
// datasets/candidates.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/records/candidate.h"
#include "warpsmith/records/measurement.h"
#include "warpsmith/task/task.h"
#include "warpsmith/toolchain/options.h"

namespace warpsmith::toolchain {

// What machine code is made for: sm_80, sm_89, sm_90a, …
struct GpuTarget {
  int major = 0, minor = 0;  // compute capability
  char variant = 0;          // 'a': this one architecture with all that it has; 'f': its family; 0: neither
  bool operator==(const GpuTarget&) const = default;
};
std::optional<GpuTarget> parse_gpu_target(std::string_view text);  // "sm_90a"
std::string to_string(const GpuTarget& target);

// The best target for a type of GPU, as NVIDIA, Slurm sites and people write it ("H100", "NVIDIA L40S",
// "a100-sxm4-80gb", "rtx_3090"); letter case does not matter. Nothing for what is not known or older than
// CUDA 13 goes back (V100).
std::optional<GpuTarget> target_of_type(std::string_view gpu_type);
// The same for what a device says of itself.
std::optional<GpuTarget> target_of_capability(int major, int minor);

// What is known of a kernel without running it.
struct KernelFacts {
  std::string name;                // name expression, as in the plan: "row<float, 256>"
  std::string lowered;             // as cuModuleGetFunction wants it
  int registers = 0;               // of a thread
  std::uint64_t shared_bytes = 0;  // static, of a block
  std::uint64_t local_bytes = 0;   // stack frame of a thread
  std::uint64_t spill_store_bytes = 0, spill_load_bytes = 0;
  int max_threads = 0;  // of a block, by __launch_bounds__; 0: not bounded
  int parameters = -1;  // how many it takes; -1: not known
};

// Memory of the module that stays from launch to launch: `__device__` and `__constant__` variables, string
// literals, tables of the compiler's, what inline PTX declares.
struct SymbolFacts {
  std::string name;     // as in the plan; for variables that the plan does not name, `lowered`
  std::string lowered;  // as cuModuleGetGlobal wants it
  std::uint64_t bytes = 0;
  bool constant = false;
};

struct CubinFacts {
  std::string target;                // "sm_90a"
  std::string nvrtc;                 // version: "13.0"
  std::vector<KernelFacts> kernels;  // of the plan, in its order
  std::vector<SymbolFacts> symbols;  // of the plan in its order, then all others; 4 MiB in all
  bool tensor_cores = false;         // a matrix instruction stands in the machine code
};

// Of the kernels of a plan together.
CodeFacts facts_of(const CubinFacts& cubin);

// As compile_for_host (host.h): finds in the cache or compiles; failures are cached, timeouts are not; safe
// with several processes and one cache. `binary` is <cache>/<key>.cubin; <key>.json beside it holds the
// facts. Throws Error only where this machine is at fault: no NVRTC, a target that it does not know, no
// sandbox, disk full; and where this program was built without CUDA.
CompileResult compile_for_gpu(const Candidate& candidate, const task::Task& task, const GpuTarget& target,
                              const CompileOptions& options);
// For several targets with one child; results in the order of `targets`.
std::vector<CompileResult> compile_for_gpus(const Candidate& candidate, const task::Task& task,
                                            const std::vector<GpuTarget>& targets,
                                            const CompileOptions& options);

// What was recorded when the cubin was made. Throws Error naming the file where it is missing or damaged.
CubinFacts read_cubin_facts(const std::filesystem::path& cubin);

// NVRTC, its version and options as they enter the cache key; for provenance. Throws Error without NVRTC.
std::string gpu_toolchain_id();

}  // namespace warpsmith::toolchain
