#include "nvml.h"

#include <dlfcn.h>

namespace warpsmith::process {

std::unique_ptr<Nvml> Nvml::load(const char* library) {
  void* handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  return handle == nullptr ? nullptr : std::unique_ptr<Nvml>(new Nvml(handle));
}

Nvml::~Nvml() {
  if (begun_) shut_down_();
  ::dlclose(handle_);
}

template <typename F>
bool Nvml::find(const char* symbol, F*& function) {
  function = reinterpret_cast<F*>(::dlsym(handle_, symbol));
  return function != nullptr;
}

bool Nvml::find_functions() {
  find("nvmlErrorString", error_);
  find("nvmlDeviceGetMigMode", mig_mode);
  find("nvmlDeviceGetHandleByUUID", device_by_uuid);
  find("nvmlDeviceGetClockInfo", clock);
  find("nvmlDeviceGetMaxClockInfo", max_clock);
  find("nvmlDeviceGetTemperature", temperature);
  find("nvmlDeviceGetPowerUsage", power);
  find("nvmlDeviceGetEnforcedPowerLimit", power_limit);
  // One thing under two names: the second is that of drivers before 535.
  if (!find("nvmlDeviceGetCurrentClocksEventReasons", clock_reasons))
    find("nvmlDeviceGetCurrentClocksThrottleReasons", clock_reasons);
  find("nvmlDeviceGetPersistenceMode", persistence);
  find("nvmlDeviceGetEccMode", ecc);
  find("nvmlDeviceGetComputeMode", compute_mode);
  find("nvmlDeviceGetComputeRunningProcesses_v3", processes);
  find("nvmlDeviceGetMPSComputeRunningProcesses_v3", mps_processes);
  find("nvmlDeviceGetProcessUtilization", uses);
  return find("nvmlInit_v2", begin_) && find("nvmlShutdown", shut_down_) &&
         find("nvmlSystemGetDriverVersion", system_driver) && find("nvmlDeviceGetCount_v2", device_count) &&
         find("nvmlDeviceGetHandleByIndex_v2", device_by_index) && find("nvmlDeviceGetName", name) &&
         find("nvmlDeviceGetUUID", uuid) && find("nvmlDeviceGetMemoryInfo", memory_info) &&
         find("nvmlDeviceGetCudaComputeCapability", compute_capability);
}

bool Nvml::begin(std::string& problem) {
  if (!find_functions()) {
    problem = "the NVML library lacks functions";
    return false;
  }
  const int answer = begin_();
  begun_ = answer == kSuccess;
  if (!begun_) problem = "NVML: " + words_of(answer);
  return begun_;
}

std::string Nvml::words_of(int answer) const {
  const char* words = error_ == nullptr ? nullptr : error_(answer);
  return words == nullptr ? "error " + std::to_string(answer) : words;
}

}  // namespace warpsmith::process
