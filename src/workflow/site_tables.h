// The tables of the site format: which keys each map of a site file has, and what text may stand at them.
#pragma once

#include <regex>

#include "keys.h"
#include "warpsmith/workflow/site.h"

namespace warpsmith::workflow {

inline constexpr const char* kSiteSchema = "warpsmith.site/1";

// What a text may be that ends up in a job or its script. The JSON Schema has the same pattern.
struct TextRule {
  std::string pattern;
  std::string wrong;  // "is no GRES"
  std::string hint;
  std::regex regex{pattern};
  bool allows(const std::string& text) const;
};
const TextRule& shell_line_rule();     // one line of any text
const TextRule& variable_name_rule();  // of `environment`

// The maps that hold the keys of a place.
enum PlaceKind : unsigned { kDefaults = 1, kCpu = 2, kGpu = 4, kController = 8 };

struct PlaceKey {
  Key<SitePlace> key;
  const TextRule* text = nullptr;  // null: any that its form allows
  unsigned kinds = kDefaults | kCpu | kGpu | kController;
  bool applies(PlaceKind kind) const { return (kinds & kind) != 0; }
};
// All but `environment`, which is a map.
const std::vector<PlaceKey>& place_keys();
inline constexpr const char* kEnvironmentMeaning =
    "Variables of its environment, by name; values are meant literally.";

// The map `slurm`.
struct SlurmKeys {
  std::string conf;
  int max_queued = 0, request_burst = SiteSpec{}.request_burst;
  double requests_per_minute = SiteSpec{}.requests_per_minute;
};
const Table<SlurmKeys>& slurm_keys();

const Table<Prices>& price_keys();  // beside its maps
const Table<TokenPrices>& token_price_keys();
const Table<SiteSpec>& site_keys();        // of the file itself
const Table<SiteSpec>& controller_keys();  // of `controller`, beside those of a place

std::string default_gres(std::string_view gpu_type);

}  // namespace warpsmith::workflow
