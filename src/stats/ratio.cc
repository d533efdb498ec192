#include "warpsmith/stats/ratio.h"

#include <algorithm>
#include <cmath>

namespace warpsmith::stats {

namespace {

double half_width(const Ratio& r) { return std::log(r.high / r.low) / 2; }

Ratio around(double value, double half) { return {value, value * std::exp(-half), value * std::exp(half)}; }

}  // namespace

Ratio divided(const Ratio& a, const Ratio& b) {
  return around(a.value / b.value, std::hypot(half_width(a), half_width(b)));
}

Ratio undivided(const Ratio& quotient, const Ratio& b) {
  const double q = half_width(quotient), of_b = half_width(b);
  return around(quotient.value * b.value, std::sqrt(std::max(0.0, q * q - of_b * of_b)));
}

}  // namespace warpsmith::stats
