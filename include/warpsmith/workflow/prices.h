// What the use of things costs, as a site file says.
#pragma once

#include <map>
#include <string>

namespace warpsmith::workflow {

// For a million tokens.
struct TokenPrices {
  double prompt = 0, completion = 0;
  friend bool operator==(const TokenPrices&, const TokenPrices&) = default;
};

// All in one currency.
struct Prices {
  std::map<std::string, TokenPrices> tokens;  // by model, as its server calls it
  friend bool operator==(const Prices&, const Prices&) = default;
};

}  // namespace warpsmith::workflow
