#include "task_checker.h"

#include "bench.h"
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
    : settings_(settings),
      harness_((load_torch_cuda(), gpu_), harness_for(gpu_, settings.unsandboxed), source_) {}

TaskFindings GpuTaskChecker::check(const task::Task& task) {
  const FileLock alone(gpu_lock_path(gpu_.facts().uuid));
  GpuBench bench(harness_, task, settings_);
  TaskFindings findings = check_task(task, bench.oracle(), bench.cases());
  findings.eager_ns = bench.baseline_call_ns();
  return findings;
}

}  // namespace warpsmith::measure
