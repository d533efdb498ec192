#include "warpsmith/executor/cluster.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"

namespace warpsmith::executor {

namespace {

constexpr std::array<std::string_view, 13> kStateNames = {
    "PENDING",   "RUNNING",   "SUSPENDED", "COMPLETED", "CANCELLED",     "FAILED", "TIMEOUT",
    "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE",  "OUT_OF_MEMORY", "OTHER"};

std::uint32_t read_index(std::string_view text, std::string_view all) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw Error("`" + std::string(all) + "` is no set of array indices");
  return value;
}

}  // namespace

std::string_view to_string(SlurmState state) { return kStateNames[static_cast<std::size_t>(state)]; }

bool has_ended(SlurmState state) {
  switch (state) {
    case SlurmState::kPending:
    case SlurmState::kRunning:
    case SlurmState::kSuspended:
    case SlurmState::kOther:
      return false;
    default:
      return true;
  }
}

std::uint32_t max_array_tasks(std::string_view scheduler_parameters) {
  constexpr std::string_view kName = "max_array_tasks=";
  for (const std::string& one : split(scheduler_parameters, ',')) {
    std::string lower = trim(one);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    if (!lower.starts_with(kName)) continue;
    std::uint32_t value = 0;
    std::from_chars(lower.data() + kName.size(), lower.data() + lower.size(), value);
    return value;
  }
  return 0;
}

std::string format_indices(const std::vector<std::uint32_t>& indices) {
  std::string text;
  for (std::size_t i = 0; i < indices.size();) {
    std::size_t last = i;
    while (last + 1 < indices.size() && indices[last + 1] == indices[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(indices[i]);
    if (last > i) text += '-' + std::to_string(indices[last]);
    i = last + 1;
  }
  return text;
}

std::vector<std::uint32_t> parse_indices(std::string_view text) {
  std::string_view list = text.substr(0, text.find('%'));
  if (list.starts_with('[')) list.remove_prefix(1);
  if (list.ends_with(']')) list.remove_suffix(1);
  std::vector<std::uint32_t> indices;
  if (list.empty()) return indices;
  for (const std::string& part : split(list, ',')) {
    const std::string_view range = part;
    const auto dash = range.find('-');
    const auto colon = range.find(':');  // "0-8:2"
    const std::uint32_t step =
        colon == std::string_view::npos ? 1 : read_index(range.substr(colon + 1), text);
    const std::uint32_t first = read_index(range.substr(0, std::min(dash, colon)), text);
    const std::uint32_t last =
        dash == std::string_view::npos ? first : read_index(range.substr(dash + 1, colon - dash - 1), text);
    constexpr std::uint32_t kMost = 10'000'000;  // beyond any MaxArraySize
    if (step == 0 || last < first || last > kMost)
      throw Error("`" + std::string(text) + "` is no set of array indices");
    for (std::uint32_t index = first; index <= last; index += step) indices.push_back(index);
  }
  return indices;
}

std::unique_ptr<Cluster> open_cluster(const fs::path& programs, const fs::path& conf) {
  const fs::path module = programs / "warpsmith-slurm.so";
  if (!fs::exists(module))
    throw Error("the Slurm module " + module.string() +
                " is not there: Warpsmith was built where Slurm's header and library were not found "
                "(Debian: libslurm-dev; else -DSLURM_ROOT=DIR)");
  // Slurm's own plugins look for its symbols in the whole process.
  void* library = ::dlopen(module.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    throw Error("the Slurm module cannot be loaded: " + std::string(why != nullptr ? why : module.string()) +
                " (it belongs to another version of Slurm: build Warpsmith on this cluster)");
  }
  using Open = Cluster* (*)(const char*);
  const auto open = reinterpret_cast<Open>(::dlsym(library, "warpsmith_open_cluster"));
  if (open == nullptr) throw Error(module.string() + " is no Slurm module of this Warpsmith");
  return std::unique_ptr<Cluster>(open(conf.c_str()));
}

}  // namespace warpsmith::executor
