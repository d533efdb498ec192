// What a loaded site says of a shard. Apart from loading: warpsmith-shard starts thousands of times and needs
// no YAML.
#include <algorithm>

#include "warpsmith/base/words.h"
#include "warpsmith/workflow/site.h"

namespace warpsmith::workflow {

const SitePlace* place_for(const SiteSpec& site, const Resources& resources) {
  if (resources.gpus == 0) return &site.cpu;
  if (resources.gpu_type.empty()) return site.gpus.size() == 1 ? &site.gpus.begin()->second : nullptr;
  const auto it = site.gpus.find(resources.gpu_type);
  return it == site.gpus.end() ? nullptr : &it->second;
}

bool is_device_of(const SitePlace& place, std::string_view device_name) {
  return place.names.empty() ||
         std::any_of(place.names.begin(), place.names.end(),
                     [&](const std::string& name) { return holds_words(device_name, name); });
}

}  // namespace warpsmith::workflow
