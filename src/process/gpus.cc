#include "warpsmith/process/gpus.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "warpsmith/base/text.h"
#include "warpsmith/process/child.h"

namespace warpsmith::process {

namespace {

constexpr const char* kVariable = "WARPSMITH_NVML";
constexpr const char* kProgram = "nvidia-smi";
constexpr std::uint64_t kMiB = 1 << 20;

// ---- NVML: the few functions that we call, as nvml.h declares them. Its ABI is stable. ----

using Device = void*;
constexpr int kSuccess = 0;
struct NvmlMemory {
  unsigned long long total, free, used;
};

class Nvml {
 public:
  // Null: there is no such library.
  static std::unique_ptr<Nvml> load(const char* library) {
    void* handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
    return handle == nullptr ? nullptr : std::unique_ptr<Nvml>(new Nvml(handle));
  }
  ~Nvml() {
    if (begun_) shut_down_();
    ::dlclose(handle_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::vector<Gpu> gpus(std::string& problem) {
    if (!find_functions()) {
      problem = "the NVML library lacks functions";
      return {};
    }
    unsigned count = 0;
    int answer = begin_();
    begun_ = answer == kSuccess;
    if (begun_) answer = count_(&count);
    if (answer != kSuccess) {
      problem = "NVML: " + words_of(answer);
      return {};
    }
    char driver[96] = {};
    if (driver_(driver, sizeof driver - 1) != kSuccess) driver[0] = '\0';
    std::vector<Gpu> out;
    for (unsigned i = 0; i < count; ++i) {
      Device device = nullptr;
      // One that has fallen off the bus, or that is another's, leaves the others as they are.
      if (device_(i, &device) != kSuccess) continue;
      Gpu gpu = gpu_of(device);
      gpu.index = static_cast<int>(i);
      gpu.driver = driver;
      if (!gpu.uuid.empty()) out.push_back(std::move(gpu));
    }
    return out;
  }

 private:
  explicit Nvml(void* handle) : handle_(handle) {}

  template <typename F>
  bool find(const char* name, F*& function) {
    function = reinterpret_cast<F*>(::dlsym(handle_, name));
    return function != nullptr;
  }
  bool find_functions() {
    find("nvmlErrorString", error_);  // these two are missing from old drivers
    find("nvmlDeviceGetMigMode", mig_);
    return find("nvmlInit_v2", begin_) && find("nvmlShutdown", shut_down_) &&
           find("nvmlSystemGetDriverVersion", driver_) && find("nvmlDeviceGetCount_v2", count_) &&
           find("nvmlDeviceGetHandleByIndex_v2", device_) && find("nvmlDeviceGetName", name_) &&
           find("nvmlDeviceGetUUID", uuid_) && find("nvmlDeviceGetMemoryInfo", memory_) &&
           find("nvmlDeviceGetCudaComputeCapability", capability_);
  }

  std::string words_of(int answer) const {
    const char* words = error_ == nullptr ? nullptr : error_(answer);
    return words == nullptr ? "error " + std::to_string(answer) : words;
  }

  // What a GPU does not tell stays as it is where it is not known.
  Gpu gpu_of(Device device) const {
    Gpu gpu;
    char text[96] = {};
    if (name_(device, text, sizeof text - 1) == kSuccess) gpu.name = text;
    if (uuid_(device, text, sizeof text - 1) == kSuccess) gpu.uuid = text;
    NvmlMemory memory{};
    if (memory_(device, &memory) == kSuccess) gpu.memory_bytes = memory.total;
    if (capability_(device, &gpu.major, &gpu.minor) != kSuccess) gpu.major = gpu.minor = 0;
    unsigned now = 0, next = 0;
    gpu.mig = mig_ != nullptr && mig_(device, &now, &next) == kSuccess && now != 0;
    return gpu;
  }

  void* handle_;
  bool begun_ = false;
  int (*begin_)() = nullptr;
  int (*shut_down_)() = nullptr;
  const char* (*error_)(int) = nullptr;
  int (*driver_)(char*, unsigned) = nullptr;
  int (*count_)(unsigned*) = nullptr;
  int (*device_)(unsigned, Device*) = nullptr;
  int (*name_)(Device, char*, unsigned) = nullptr;
  int (*uuid_)(Device, char*, unsigned) = nullptr;
  int (*memory_)(Device, NvmlMemory*) = nullptr;
  int (*capability_)(Device, int*, int*) = nullptr;
  int (*mig_)(Device, unsigned*, unsigned*) = nullptr;
};

// ---- nvidia-smi, where the library is not to be had, as in some containers ----

bool in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path != nullptr ? path : "/usr/bin:/bin", ':'))
    if (!folder.empty() && ::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

std::vector<std::vector<std::string>> ask_program(const char* query, std::size_t fields,
                                                  std::string& problem) {
  ChildSpec spec;
  spec.argv = {kProgram, std::string("--query-gpu=") + query, "--format=csv,noheader,nounits"};
  spec.limits.wall_s = 10;
  const ChildResult result = run_child(spec);
  std::vector<std::vector<std::string>> rows;
  if (result.ending != Ending::kExited || result.exit_code != 0) {
    const std::string said = trim(result.out.empty() ? result.err : result.out);
    problem =
        std::string(kProgram) + " failed" + (said.empty() ? "" : ": " + said.substr(0, said.find('\n')));
    return rows;
  }
  for (const std::string& line : split_lines(result.out)) {
    std::vector<std::string> parts = split(line, ',');
    if (parts.size() != fields) continue;
    for (std::string& part : parts) part = trim(part);
    rows.push_back(std::move(parts));
  }
  return rows;
}

std::vector<Gpu> from_program(std::string& problem) {
  if (!in_path(kProgram)) return {};
  auto rows =
      ask_program("name,uuid,driver_version,index,memory.total,compute_cap,mig.mode.current", 7, problem);
  // Drivers before 510 know no compute_cap.
  if (rows.empty()) rows = ask_program("name,uuid,driver_version", 3, problem);
  std::vector<Gpu> out;
  for (const std::vector<std::string>& row : rows) {
    Gpu gpu{.name = row[0], .uuid = row[1], .driver = row[2], .index = static_cast<int>(out.size())};
    if (row.size() > 3) {
      gpu.index = std::atoi(row[3].c_str());
      gpu.memory_bytes = std::strtoull(row[4].c_str(), nullptr, 10) * kMiB;
      gpu.major = std::atoi(row[5].c_str());
      const auto dot = row[5].find('.');
      gpu.minor = dot == std::string::npos ? 0 : std::atoi(row[5].c_str() + dot + 1);
      gpu.mig = row[6] == "Enabled";
    }
    out.push_back(std::move(gpu));
  }
  if (!out.empty()) problem.clear();
  return out;
}

}  // namespace

std::vector<Gpu> nvidia_gpus(std::string* problem) {
  std::string words;
  std::vector<Gpu> gpus;
  try {
    const char* wanted = std::getenv(kVariable);
    const std::string library = wanted == nullptr ? "libnvidia-ml.so.1" : wanted;
    if (library.empty()) return gpus;
    const auto nvml = library == kProgram ? nullptr : Nvml::load(library.c_str());
    if (nvml != nullptr)
      gpus = nvml->gpus(words);
    else if (wanted != nullptr && library != kProgram)
      words = library + " cannot be loaded";
    else
      gpus = from_program(words);
  } catch (const std::exception& e) {  // no memory, no processes
    words = e.what();
  }
  if (problem != nullptr) *problem = words;
  return gpus;
}

std::vector<Gpu> usable_gpus(const std::vector<Gpu>& gpus, const std::optional<std::string>& visible) {
  std::vector<Gpu> out;
  const auto add = [&](const Gpu& gpu) {
    for (const Gpu& other : out)
      if (other.uuid == gpu.uuid) return;
    if (!gpu.mig) out.push_back(gpu);
  };
  if (!visible) {
    for (const Gpu& gpu : gpus) add(gpu);
    return out;
  }
  for (const std::string& part : split(*visible, ',')) {
    const std::string word = trim(part);
    const bool number = !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
    const auto found = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& gpu) {
      return number ? std::to_string(gpu.index) == word
                    : word.starts_with("GPU-") && gpu.uuid.starts_with(word);
    });
    if (found == gpus.end()) break;  // as CUDA does
    add(*found);
  }
  return out;
}

std::vector<Gpu> usable_gpus() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr && *visible == '\0') return {};  // no need to look
  return usable_gpus(nvidia_gpus(), visible == nullptr ? std::nullopt : std::optional<std::string>(visible));
}

}  // namespace warpsmith::process
