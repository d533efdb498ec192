#include "gpu_place.h"

#include <algorithm>

#include "warpsmith/base/words.h"
#include "warpsmith/measure/host.h"

namespace warpsmith::measure {

void require_gpu(const Settings& settings, const std::string& name) {
  const auto& names = settings.device_names;
  const bool right = std::any_of(names.begin(), names.end(),
                                 [&](const std::string& word) { return holds_words(name, word); });
  if (!names.empty() && !right)
    throw Error("wrong GPU: this is a " + name + ", and device kind " + settings.device_kind + " is wanted",
                kExitWrongDevice);
}

std::filesystem::path gpu_lock_path(const std::string& uuid) {
  return timing_lock_path().parent_path() / ("warpsmith-timing-" + uuid + ".lock");
}

}  // namespace warpsmith::measure
