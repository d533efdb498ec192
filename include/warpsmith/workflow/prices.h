// What the use of things costs, as a site file says.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace warpsmith::workflow {

// For a million tokens.
struct TokenPrices {
  double prompt = 0, completion = 0;
  friend bool operator==(const TokenPrices&, const TokenPrices&) = default;
};

// All in one currency.
struct Prices {
  std::string currency = {};                     // "EUR"; empty: not said
  double cpu_hours = 0;                          // of a CPU of shards without a GPU; 0: no price
  std::map<std::string, double> gpu_hours = {};  // by GPU type, as workflows name it; CPUs beside it included
  std::map<std::string, TokenPrices> tokens = {};  // by model, as its server calls it

  bool has_hours() const { return cpu_hours > 0 || !gpu_hours.empty(); }
  // Of what a shard holds for some time: its GPUs' hours where it has any, else its CPUs'. Nothing where
  // these have no price.
  std::optional<double> of_hours(const std::string& type, double gpu_h, double cpu_h) const {
    if (gpu_h <= 0) return cpu_hours > 0 ? std::optional(cpu_hours * cpu_h) : std::nullopt;
    const auto price = gpu_hours.find(type);
    return price == gpu_hours.end() ? std::nullopt : std::optional(price->second * gpu_h);
  }
  friend bool operator==(const Prices&, const Prices&) = default;
};

}  // namespace warpsmith::workflow
