#include "warpsmith/process/gpus.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "nvml.h"
#include "warpsmith/base/text.h"
#include "warpsmith/process/child.h"
#include "warpsmith/process/program_path.h"

namespace warpsmith::process {

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// What a GPU does not tell stays as it is where it is not known.
Gpu gpu_of(const Nvml& nvml, Nvml::Device device) {
  Gpu gpu;
  char text[96] = {};
  if (nvml.name(device, text, sizeof text - 1) == Nvml::kSuccess) gpu.name = text;
  if (nvml.uuid(device, text, sizeof text - 1) == Nvml::kSuccess) gpu.uuid = text;
  Nvml::Memory memory{};
  if (nvml.memory_info(device, &memory) == Nvml::kSuccess) gpu.memory_bytes = memory.total;
  if (nvml.compute_capability(device, &gpu.major, &gpu.minor) != Nvml::kSuccess) gpu.major = gpu.minor = 0;
  unsigned now = 0, next = 0;
  gpu.mig = nvml.mig_mode != nullptr && nvml.mig_mode(device, &now, &next) == Nvml::kSuccess && now != 0;
  return gpu;
}

std::vector<Gpu> from_nvml(Nvml& nvml, std::string& problem) {
  if (!nvml.begin(problem)) return {};
  unsigned count = 0;
  if (const int answer = nvml.device_count(&count); answer != Nvml::kSuccess) {
    problem = "NVML: " + nvml.words_of(answer);
    return {};
  }
  char driver[96] = {};
  if (nvml.system_driver(driver, sizeof driver - 1) != Nvml::kSuccess) driver[0] = '\0';
  std::vector<Gpu> out;
  for (unsigned i = 0; i < count; ++i) {
    Nvml::Device device = nullptr;
    // One that has fallen off the bus, or that is another's, leaves the others as they are.
    if (nvml.device_by_index(i, &device) != Nvml::kSuccess) continue;
    Gpu gpu = gpu_of(nvml, device);
    gpu.index = static_cast<int>(i);
    gpu.driver = driver;
    if (!gpu.uuid.empty()) out.push_back(std::move(gpu));
  }
  return out;
}

// ---- nvidia-smi, where the library is not to be had, as in some containers ----

std::vector<std::vector<std::string>> ask_program(const char* query, std::size_t fields,
                                                  std::string& problem) {
  ChildSpec spec;
  spec.argv = {kNvidiaSmi, std::string("--query-gpu=") + query, "--format=csv,noheader,nounits"};
  spec.limits.wall_s = 10;
  const ChildResult result = run_child(spec);
  std::vector<std::vector<std::string>> rows;
  if (result.ending != Ending::kExited || result.exit_code != 0) {
    const std::string said = trim(result.out.empty() ? result.err : result.out);
    problem =
        std::string(kNvidiaSmi) + " failed" + (said.empty() ? "" : ": " + said.substr(0, said.find('\n')));
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
  if (find_program(kNvidiaSmi).empty()) return {};
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
    const char* wanted = std::getenv(kNvmlVariable);
    const std::string library = wanted == nullptr ? "libnvidia-ml.so.1" : wanted;
    if (library.empty()) return gpus;
    const auto nvml = library == kNvidiaSmi ? nullptr : Nvml::load(library.c_str());
    if (nvml != nullptr)
      gpus = from_nvml(*nvml, words);
    else if (wanted != nullptr && library != kNvidiaSmi)
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
