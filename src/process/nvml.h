// NVML, loaded when it is asked for: the functions that we call, as nvml.h declares them. Its ABI is stable.
#pragma once

#include <memory>
#include <string>

namespace warpsmith::process {

// The environment variable that names the library, and the program that is asked where it names that one.
inline constexpr const char* kNvmlVariable = "WARPSMITH_NVML";
inline constexpr const char* kNvidiaSmi = "nvidia-smi";

class Nvml {
 public:
  using Device = void*;
  struct Memory {
    unsigned long long total, free, used;
  };
  struct Process {  // nvmlProcessInfo_t, of …_v3
    unsigned pid;
    unsigned long long used_memory;
    unsigned gpu_instance, compute_instance;
  };
  struct Use {  // nvmlProcessUtilizationSample_t
    unsigned pid;
    unsigned long long time_us;             // since 1970
    unsigned sm, memory, encoder, decoder;  // per cent
  };
  static constexpr int kSuccess = 0, kInsufficientSize = 7;
  static constexpr int kClockSm = 1, kClockMemory = 2;  // nvmlClockType_t
  static constexpr int kTemperatureGpu = 0;             // nvmlTemperatureSensors_t

  // The library that WARPSMITH_NVML names, else libnvidia-ml.so.1. Null where it cannot be loaded, or is
  // none.
  static std::unique_ptr<Nvml> load(const char* library);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Starts it. False, and why, where it lacks functions or the driver does not answer.
  bool begin(std::string& problem);
  std::string words_of(int answer) const;

  // Called after begin() alone.
  int (*system_driver)(char*, unsigned) = nullptr;
  int (*device_count)(unsigned*) = nullptr;
  int (*device_by_index)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*memory_info)(Device, Memory*) = nullptr;
  int (*compute_capability)(Device, int*, int*) = nullptr;
  // Null where the library is too old, or too new, for them.
  int (*device_by_uuid)(const char*, Device*) = nullptr;
  int (*mig_mode)(Device, unsigned*, unsigned*) = nullptr;  // now, after the next reset
  int (*clock)(Device, int, unsigned*) = nullptr;           // MHz, of a kClock…
  int (*max_clock)(Device, int, unsigned*) = nullptr;
  int (*temperature)(Device, int, unsigned*) = nullptr;  // °C
  int (*power)(Device, unsigned*) = nullptr;             // mW
  int (*power_limit)(Device, unsigned*) = nullptr;       // mW
  int (*clock_reasons)(Device, unsigned long long*) = nullptr;
  int (*persistence)(Device, int*) = nullptr;  // 1: on
  int (*ecc)(Device, int*, int*) = nullptr;    // now, after the next restart; 1: on
  int (*compute_mode)(Device, int*) = nullptr;
  // Room for so many, and how many there are.
  int (*processes)(Device, unsigned*, Process*) = nullptr;      // with a context there
  int (*mps_processes)(Device, unsigned*, Process*) = nullptr;  // clients of MPS
  int (*uses)(Device, Use*, unsigned*, unsigned long long since_us) = nullptr;

 private:
  explicit Nvml(void* handle) : handle_(handle) {}
  template <typename F>
  bool find(const char* name, F*& function);
  bool find_functions();

  void* handle_;
  bool begun_ = false;
  int (*begin_)() = nullptr;
  int (*shut_down_)() = nullptr;
  const char* (*error_)(int) = nullptr;
};

}  // namespace warpsmith::process
