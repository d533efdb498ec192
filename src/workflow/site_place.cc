// What a loaded site says of a shard. Apart from loading: warpsmith-shard starts thousands of times and needs no YAML.
#include <cctype>

#include "warpsmith/workflow/site.h"

namespace warpsmith::workflow {

namespace {

bool is_alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

// Whether `device` holds `name` from `at` on and ends a word with it, looking at letters and digits only.
bool holds_at(std::string_view device, std::size_t at, std::string_view name) {
  for (const char c : name) {
    if (!is_alnum(c)) continue;
    while (at < device.size() && !is_alnum(device[at])) ++at;
    if (at == device.size() || !same_letter(device[at], c)) return false;
    ++at;
  }
  return at == device.size() || !is_alnum(device[at]);
}

}  // namespace

const SitePlace* place_for(const SiteSpec& site, const Resources& resources) {
  if (resources.gpus == 0) return &site.cpu;
  if (resources.gpu_type.empty()) return site.gpus.size() == 1 ? &site.gpus.begin()->second : nullptr;
  const auto it = site.gpus.find(resources.gpu_type);
  return it == site.gpus.end() ? nullptr : &it->second;
}

bool is_device_of(const SitePlace& place, std::string_view device_name) {
  if (place.names.empty()) return true;
  for (const std::string& name : place.names)
    for (std::size_t at = 0; at < device_name.size(); ++at)
      if (is_alnum(device_name[at]) && (at == 0 || !is_alnum(device_name[at - 1])) &&
          holds_at(device_name, at, name))
        return true;
  return false;
}

}  // namespace warpsmith::workflow
