#include "task_checker.h"

#include "oracle.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/temporary_folder.h"
#include "warpsmith/measure/harness_cubin.h"
#include "warpsmith/measure/host.h"
#include "warpsmith/process/gpus.h"

namespace warpsmith::measure {

namespace {

std::vector<std::byte> harness_for(const device::Gpu& gpu, bool unsandboxed) {
  const TemporaryFolder cache("harness");
  return harness_cubin(process::compile_target(gpu.facts().major, gpu.facts().minor), cache.path(),
                       unsandboxed);
}

}  // namespace

GpuTaskChecker::GpuTaskChecker(const Settings& settings)
    : seeds_(settings.check_seeds),
      seed_(settings.seed),
      harness_((load_torch_cuda(), gpu_), harness_for(gpu_, settings.unsandboxed), source_) {}

TaskFindings GpuTaskChecker::check(const task::Task& task) const {
  constexpr std::uint64_t kAnswers = 1ull << 30;  // bytes, on the host
  const FileLock alone(gpu_lock_path(gpu_.facts().uuid));
  const Reference reference(task, Place::kGpu);
  GpuOracle oracle(harness_, task, reference, seed_, kAnswers);
  return check_task(task, oracle, gpu_check_cases(task, seeds_));
}

}  // namespace warpsmith::measure
