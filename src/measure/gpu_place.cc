#include "gpu_place.h"

#include <algorithm>

#include "warpsmith/base/words.h"

namespace warpsmith::measure {

void require_gpu(const Settings& settings, const std::string& name) {
  const auto& names = settings.device_names;
  const bool right = std::any_of(names.begin(), names.end(),
                                 [&](const std::string& word) { return holds_words(name, word); });
  if (!names.empty() && !right)
    throw Error("wrong GPU: this is a " + name + ", and device kind " + settings.device_kind + " is wanted",
                kExitWrongDevice);
}

bool lacks_gpu_memory(const std::string& message) {
  for (const char* words :
       {"out of memory", "OUT_OF_MEMORY", "OutOfMemory", "ALLOC_FAILED", "does not fit on this GPU"})
    if (message.find(words) != std::string::npos) return true;
  return false;
}

std::function<bool()> slowed_down(const std::optional<process::GpuWatch>& watch,
                                  std::optional<std::uint64_t>* seen) {
  if (!watch) return {};
  return [&watch, seen] {
    const std::optional<std::uint64_t> bits = watch->reasons();
    if (bits && seen != nullptr) *seen = seen->value_or(0) | *bits;
    return bits && process::is_slowed_down(*bits);
  };
}

}  // namespace warpsmith::measure
