// A library with the functions of NVML that we call, for tests: WARPSMITH_NVML=<this> and
//
//   FAKE_GPUS="NVIDIA L40 8.9;NVIDIA H200 9.0 MIG"     one GPU each; without it two L40
//
// UUIDs are GPU-fake-0, GPU-fake-1, …; each has 46068 MiB. A GPU named `lost` cannot be opened;
// FAKE_GPUS=broken: the driver does not answer at all.
//
//   FAKE_READING="1980 2619 45 312500 0x4"     SM and memory clock, temperature, mW, clock reasons; asked for
//   anew by each call
//
//   FAKE_PROCESSES="4711 4712"                 that have a context there
//   FAKE_USES="4711 30 1764190000000000;..."   process, per cent of its time, when (microseconds since 1970)
//
// Without them, and for each number that is `-`, the GPU does not tell (NVML_ERROR_NOT_SUPPORTED).
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Fake {
  std::string name;
  int major = 0, minor = 0;
  bool mig = false;
};

std::string configured() {
  const char* text = std::getenv("FAKE_GPUS");
  return text != nullptr ? text : "NVIDIA L40 8.9;NVIDIA L40 8.9";
}

std::vector<Fake>& gpus() {
  static std::vector<Fake> all;
  return all;
}

void read_gpus() {
  gpus().clear();
  std::istringstream in(configured());
  for (std::string entry; std::getline(in, entry, ';');) {
    Fake gpu;
    if (const auto at = entry.rfind(" MIG"); at != std::string::npos) {
      gpu.mig = true;
      entry.resize(at);
    }
    if (const auto at = entry.rfind(' '); at != std::string::npos) {
      gpu.major = std::atoi(entry.c_str() + at + 1);
      gpu.minor = std::atoi(entry.c_str() + entry.rfind('.') + 1);
      entry.resize(at);
    }
    gpu.name = entry;
    gpus().push_back(gpu);
  }
}

int copy(const std::string& text, char* out, unsigned size) {
  if (text.size() + 1 > size) return 7;  // NVML_ERROR_INSUFFICIENT_SIZE
  std::memcpy(out, text.c_str(), text.size() + 1);
  return 0;
}

constexpr int kNotSupported = 3;

// Number `index` of FAKE_READING.
template <typename Number>
int reading(std::size_t index, Number* out) {
  const char* text = std::getenv("FAKE_READING");
  std::istringstream in(text != nullptr ? text : "");
  std::string word;
  for (std::size_t i = 0; i <= index; ++i)
    if (!(in >> word)) return kNotSupported;
  if (word == "-") return kNotSupported;
  *out = static_cast<Number>(std::strtoull(word.c_str(), nullptr, 0));
  return 0;
}

struct Process {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
struct Use {
  unsigned pid;
  unsigned long long time_us;
  unsigned sm, memory, encoder, decoder;
};

template <typename T>
int give(const std::vector<T>& all, unsigned* count, T* room) {
  const bool fits = *count >= all.size();
  *count = static_cast<unsigned>(all.size());
  if (!fits) return 7;  // NVML_ERROR_INSUFFICIENT_SIZE
  for (std::size_t i = 0; i < all.size(); ++i) room[i] = all[i];
  return 0;
}

const Fake& of(void* device) { return *static_cast<Fake*>(device); }

}  // namespace

extern "C" {

int nvmlInit_v2() {
  read_gpus();
  return configured() == "broken" ? 9 : 0;
}
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int error) { return error == 9 ? "Driver Not Loaded" : "some error"; }
int nvmlSystemGetDriverVersion(char* out, unsigned size) { return copy("570.86.15", out, size); }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(gpus().size());
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &gpus().at(index);
  return gpus()[index].name == "lost" ? 15 : 0;  // NVML_ERROR_GPU_IS_LOST
}
int nvmlDeviceGetName(void* device, char* out, unsigned size) { return copy(of(device).name, out, size); }
int nvmlDeviceGetUUID(void* device, char* out, unsigned size) {
  return copy("GPU-fake-" + std::to_string(&of(device) - gpus().data()), out, size);
}
int nvmlDeviceGetMemoryInfo(void*, unsigned long long* memory) {
  memory[0] = 46068ull << 20;
  memory[1] = memory[0];
  memory[2] = 0;
  return 0;
}
int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  *major = of(device).major;
  *minor = of(device).minor;
  return 0;
}
int nvmlDeviceGetMigMode(void* device, unsigned* now, unsigned* next) {
  *now = *next = of(device).mig ? 1 : 0;
  return 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  for (std::size_t i = 0; i < gpus().size(); ++i)
    if ("GPU-fake-" + std::to_string(i) == uuid)
      return nvmlDeviceGetHandleByIndex_v2(static_cast<unsigned>(i), device);
  return 6;  // NVML_ERROR_NOT_FOUND
}
int nvmlDeviceGetClockInfo(void*, int type, unsigned* clock) { return reading(type == 1 ? 0 : 1, clock); }
int nvmlDeviceGetMaxClockInfo(void*, int type, unsigned* clock) {
  *clock = type == 1 ? 1980 : 2619;
  return 0;
}
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) { return reading(2, celsius); }
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) { return reading(3, milliwatts); }
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  *milliwatts = 700000;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  return reading(4, reasons);
}
int nvmlDeviceGetPersistenceMode(void*, int* mode) {
  *mode = 1;
  return 0;
}
int nvmlDeviceGetEccMode(void*, int* now, int* next) {
  *now = *next = 1;
  return 0;
}
int nvmlDeviceGetComputeMode(void*, int* mode) {
  *mode = 3;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, Process* room) {
  const char* text = std::getenv("FAKE_PROCESSES");
  if (text == nullptr) return kNotSupported;
  std::istringstream in(text);
  std::vector<Process> all;
  for (unsigned pid = 0; in >> pid;) all.push_back({pid, 0, 0, 0});
  return give(all, count, room);
}
int nvmlDeviceGetProcessUtilization(void*, Use* room, unsigned* count, unsigned long long since_us) {
  const char* text = std::getenv("FAKE_USES");
  if (text == nullptr) return kNotSupported;
  std::istringstream in(text);
  std::vector<Use> all;
  for (std::string entry; std::getline(in, entry, ';');) {
    Use use = {};
    std::istringstream(entry) >> use.pid >> use.sm >> use.time_us;
    if (use.time_us > since_us) all.push_back(use);
  }
  if (all.empty()) return 6;  // NVML_ERROR_NOT_FOUND
  return give(all, count, room);
}
}
