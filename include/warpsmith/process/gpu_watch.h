// How a GPU does while it is measured on, as NVML tells: clocks, temperature, power, and what keeps its
// clocks down.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace warpsmith::process {

// What a GPU does not tell is nothing.
struct GpuReading {
  std::optional<int> sm_clock_mhz, memory_clock_mhz, temperature_c;
  std::optional<double> power_w;
  std::optional<std::uint64_t> reasons;  // bits of NVML's nvmlClocksEventReasons
};

// What a process did on a GPU in some tenths of a second.
struct GpuUse {
  int pid = 0;                // as the driver counts: the machine's, where a container has a count of its own
  int sm_percent = 0;         // of the time in which some kernel of it ran
  std::uint64_t time_us = 0;  // of the end of that stretch; since 1970
};

// "gpu_idle sw_power_cap": the reasons in `bits`, in the order of their bits; "none" without any. Bits that
// are not known are told as numbers
// ("0x400").
std::string clock_reason_words(std::uint64_t bits);
// Whether the GPU was slowed down for its own protection (heat, power brake, another hardware slowdown): what
// is timed then says nothing of a program. An idle GPU, clocks that somebody has set, and a cap of its power
// are how it is run; they are not meant.
bool is_slowed_down(std::uint64_t bits);

// One GPU under watch; NVML stays loaded as long. Each question takes from some microseconds to a
// millisecond, and none touches the GPU's own queue. Move-only, not thread-safe; not to be used over a fork.
class GpuWatch {
 public:
  // `uuid`: as CUDA tells it, "GPU-…". Nothing where there is no NVML (WARPSMITH_NVML as for nvidia_gpus();
  // `nvidia-smi` is too slow for this) or where it does not know that GPU; `problem`, if given, then says
  // why. Never throws.
  static std::optional<GpuWatch> open(const std::string& uuid, std::string* problem = nullptr);
  GpuWatch(GpuWatch&&) noexcept;
  GpuWatch& operator=(GpuWatch&&) noexcept;
  ~GpuWatch();

  GpuReading read() const;
  // One question.
  std::optional<std::uint64_t> reasons() const;
  // Process ids of who has a context there; nothing where the GPU does not tell.
  std::optional<std::vector<int>> processes() const;
  // What was seen of processes since then (microseconds since 1970), as often as the driver looks; nothing
  // where the GPU does not tell.
  std::optional<std::vector<GpuUse>> uses(std::uint64_t since_us) const;
  // How the GPU is set up: driver, persistence, ecc, compute_mode, mig, power_limit_w, sm_clock_max_mhz,
  // memory_clock_max_mhz; mps, where clients of MPS are there: "on".
  std::map<std::string, std::string> settings() const;

 private:
  struct State;
  explicit GpuWatch(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace warpsmith::process
