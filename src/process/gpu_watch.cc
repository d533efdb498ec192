#include "warpsmith/process/gpu_watch.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "nvml.h"

namespace warpsmith::process {

namespace {

struct Reason {
  std::uint64_t bit;
  std::string_view word;
  bool slows_down;
};
// nvmlClocksEventReason…, formerly nvmlClocksThrottleReason….
constexpr std::array<Reason, 9> kReasons = {{{0x1, "gpu_idle", false},
                                             {0x2, "application_clocks", false},
                                             {0x4, "sw_power_cap", false},
                                             {0x8, "hw_slowdown", true},
                                             {0x10, "sync_boost", false},
                                             {0x20, "sw_thermal_slowdown", true},
                                             {0x40, "hw_thermal_slowdown", true},
                                             {0x80, "hw_power_brake", true},
                                             {0x100, "display_clocks", false}}};

std::string compute_mode_word(int mode) {
  constexpr std::array<const char*, 4> kWords = {"default", "exclusive_thread", "prohibited",
                                                 "exclusive_process"};
  return mode >= 0 && static_cast<std::size_t>(mode) < kWords.size() ? kWords[static_cast<std::size_t>(mode)]
                                                                     : std::to_string(mode);
}

// The device of that UUID; null and why not.
Nvml::Device find_device(const Nvml& nvml, const std::string& uuid, std::string& problem) {
  Nvml::Device device = nullptr;
  if (nvml.device_by_uuid != nullptr) {
    const int answer = nvml.device_by_uuid(uuid.c_str(), &device);
    if (answer == Nvml::kSuccess) return device;
    problem = "NVML: " + uuid + ": " + nvml.words_of(answer);
    return nullptr;
  }
  problem = "NVML: it finds no GPU by its UUID";
  return nullptr;
}

// What a function tells that takes room for so many and says how many there are. Nothing where it does not
// tell; empty where there is none, which some drivers call "not found".
template <typename T, typename Ask>
std::optional<std::vector<T>> all_of(Ask ask, bool there) {
  constexpr int kTries = 3;  // there may be more of them the next time
  constexpr int kNotFound = 6;
  std::vector<T> room;
  for (int i = 0; there && i < kTries; ++i) {
    unsigned count = static_cast<unsigned>(room.size());
    const int answer = ask(&count, room.empty() ? nullptr : room.data());
    if (answer == kNotFound) return std::vector<T>();
    if (answer == Nvml::kSuccess && count <= room.size()) {
      room.resize(count);
      return room;
    }
    if (answer != Nvml::kSuccess && answer != Nvml::kInsufficientSize) return std::nullopt;
    room.resize(count + 8);
  }
  return std::nullopt;
}

}  // namespace

std::string clock_reason_words(std::uint64_t bits) {
  std::string words;
  const auto add = [&words](std::string_view word) {
    if (!words.empty()) words += ' ';
    words += word;
  };
  for (const Reason& reason : kReasons) {
    if ((bits & reason.bit) != 0) add(reason.word);
    bits &= ~reason.bit;
  }
  if (bits != 0) {
    char digits[17] = {};
    std::to_chars(digits, digits + 16, bits, 16);
    add(std::string("0x") + digits);
  }
  return words.empty() ? "none" : words;
}

bool is_slowed_down(std::uint64_t bits) {
  for (const Reason& reason : kReasons)
    if (reason.slows_down && (bits & reason.bit) != 0) return true;
  return false;
}

struct GpuWatch::State {
  std::unique_ptr<Nvml> nvml;
  Nvml::Device device = nullptr;

  // A number of the device; nothing where it does not tell.
  std::optional<unsigned> number(int (*function)(Nvml::Device, unsigned*)) const {
    unsigned value = 0;
    if (function == nullptr || function(device, &value) != Nvml::kSuccess) return std::nullopt;
    return value;
  }
  std::optional<int> number(int (*function)(Nvml::Device, int, unsigned*), int which) const {
    unsigned value = 0;
    if (function == nullptr || function(device, which, &value) != Nvml::kSuccess) return std::nullopt;
    return static_cast<int>(value);
  }
};

GpuWatch::GpuWatch(std::unique_ptr<State> state) : state_(std::move(state)) {}
GpuWatch::GpuWatch(GpuWatch&&) noexcept = default;
GpuWatch& GpuWatch::operator=(GpuWatch&&) noexcept = default;
GpuWatch::~GpuWatch() = default;

std::optional<GpuWatch> GpuWatch::open(const std::string& uuid, std::string* problem) {
  std::string words;
  try {
    const char* wanted = std::getenv(kNvmlVariable);
    const std::string library = wanted == nullptr ? "libnvidia-ml.so.1" : wanted;
    auto state = std::make_unique<State>();
    if (library.empty() || library == kNvidiaSmi) {
      words = std::string(kNvmlVariable) + " names no library";
    } else if (state->nvml = Nvml::load(library.c_str()); state->nvml == nullptr) {
      words = library + " cannot be loaded";
    } else if (state->nvml->begin(words)) {
      state->device = find_device(*state->nvml, uuid, words);
      if (state->device != nullptr) return GpuWatch(std::move(state));
    }
  } catch (const std::exception& e) {  // no memory
    words = e.what();
  }
  if (problem != nullptr) *problem = words;
  return std::nullopt;
}

std::optional<std::uint64_t> GpuWatch::reasons() const {
  unsigned long long bits = 0;
  const Nvml& nvml = *state_->nvml;
  if (nvml.clock_reasons == nullptr || nvml.clock_reasons(state_->device, &bits) != Nvml::kSuccess)
    return std::nullopt;
  return bits;
}

GpuReading GpuWatch::read() const {
  const State& s = *state_;
  GpuReading reading;
  reading.sm_clock_mhz = s.number(s.nvml->clock, Nvml::kClockSm);
  reading.memory_clock_mhz = s.number(s.nvml->clock, Nvml::kClockMemory);
  reading.temperature_c = s.number(s.nvml->temperature, Nvml::kTemperatureGpu);
  if (const auto milliwatts = s.number(s.nvml->power)) reading.power_w = *milliwatts / 1000.0;
  reading.reasons = reasons();
  return reading;
}

std::optional<std::vector<int>> GpuWatch::processes() const {
  std::vector<int> pids;
  const auto found = all_of<Nvml::Process>(
      [&](unsigned* count, Nvml::Process* room) {
        return state_->nvml->processes(state_->device, count, room);
      },
      state_->nvml->processes != nullptr);
  if (!found) return std::nullopt;
  for (const Nvml::Process& process : *found) pids.push_back(static_cast<int>(process.pid));
  return pids;
}

std::optional<std::vector<GpuUse>> GpuWatch::uses(std::uint64_t since_us) const {
  std::vector<GpuUse> uses;
  const auto found = all_of<Nvml::Use>(
      [&](unsigned* count, Nvml::Use* room) {
        return state_->nvml->uses(state_->device, room, count, since_us);
      },
      state_->nvml->uses != nullptr);
  if (!found) return std::nullopt;
  for (const Nvml::Use& use : *found)
    if (use.pid != 0 && use.time_us > since_us)
      uses.push_back({static_cast<int>(use.pid), static_cast<int>(use.sm), use.time_us});
  return uses;
}

std::map<std::string, std::string> GpuWatch::settings() const {
  const State& s = *state_;
  const Nvml& nvml = *s.nvml;
  std::map<std::string, std::string> out;
  const auto on_off = [&out](const char* name, int value) { out[name] = value == 0 ? "off" : "on"; };
  char driver[96] = {};
  if (nvml.system_driver(driver, sizeof driver - 1) == Nvml::kSuccess) out["driver"] = driver;
  int value = 0, next = 0;
  if (nvml.persistence != nullptr && nvml.persistence(s.device, &value) == Nvml::kSuccess)
    on_off("persistence", value);
  if (nvml.ecc != nullptr && nvml.ecc(s.device, &value, &next) == Nvml::kSuccess) on_off("ecc", value);
  if (nvml.compute_mode != nullptr && nvml.compute_mode(s.device, &value) == Nvml::kSuccess)
    out["compute_mode"] = compute_mode_word(value);
  unsigned mig = 0, mig_next = 0;
  if (nvml.mig_mode != nullptr && nvml.mig_mode(s.device, &mig, &mig_next) == Nvml::kSuccess)
    on_off("mig", static_cast<int>(mig));
  if (const auto limit = s.number(nvml.power_limit))
    out["power_limit_w"] = std::to_string((*limit + 500) / 1000);
  if (const auto clock = s.number(nvml.max_clock, Nvml::kClockSm))
    out["sm_clock_max_mhz"] = std::to_string(*clock);
  if (const auto clock = s.number(nvml.max_clock, Nvml::kClockMemory))
    out["memory_clock_max_mhz"] = std::to_string(*clock);
  const auto clients = all_of<Nvml::Process>(
      [&](unsigned* count, Nvml::Process* room) { return nvml.mps_processes(s.device, count, room); },
      nvml.mps_processes != nullptr);
  if (clients && !clients->empty()) out["mps"] = "on";
  return out;
}

}  // namespace warpsmith::process
