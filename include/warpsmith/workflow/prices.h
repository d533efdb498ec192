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
  std::map<std::string, double> gpu_hours;    // by GPU type, as workflows name it
  std::map<std::string, TokenPrices> tokens;  // by model, as its server calls it
  // Of hours of GPUs of a type; nothing where it has no price.
  std::optional<double> of_gpu_hours(const std::string& type, double hours) const {
    const auto price = gpu_hours.find(type);
    return price == gpu_hours.end() ? std::nullopt : std::optional(price->second * hours);
  }
  friend bool operator==(const Prices&, const Prices&) = default;
};

}  // namespace warpsmith::workflow
