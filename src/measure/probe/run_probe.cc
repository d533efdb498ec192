#include <optional>

#include "gpu/harness.h"
#include "probe.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/temporary_folder.h"
#include "warpsmith/measure/harness_cubin.h"
#include "warpsmith/measure/host.h"
#include "warpsmith/measure/probe.h"
#include "warpsmith/measure/reference.h"
#include "warpsmith/process/gpus.h"

namespace warpsmith::measure {

Ceilings probe_this_gpu(const ProbeOptions& options) {
  const device::Gpu gpu;  // first: where there is none, nothing else needs to be there
  load_torch_cuda();
  std::optional<TemporaryFolder> passing;
  if (options.cache.empty()) passing.emplace("probe");
  const std::string target = process::compile_target(gpu.facts().major, gpu.facts().minor);
  const std::vector<std::byte> kernels =
      harness_cubin(target, passing ? passing->path() : options.cache, options.unsandboxed);
  configure_torch(1);
  const ValueSource source;
  const FileLock lock(gpu_lock_path(gpu.facts().uuid));
  GpuHarness harness(gpu, kernels, source);
  const std::optional<process::GpuWatch> watch = process::GpuWatch::open(gpu.facts().uuid);
  return probe_gpu(harness, watch ? &*watch : nullptr, options.thorough);
}

}  // namespace warpsmith::measure
