#include "dtype_bits.h"

#include <bit>
#include <cmath>

namespace warpsmith::device {

namespace {

std::uint16_t bfloat16_bits(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>(bits >> 16 | 64u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace

std::uint16_t half_bits(double value) {
  // By way of float; the compilers that we build with have no half on every machine.
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const int exponent = static_cast<int>(bits >> 23 & 255u) - 127 + 15;
  std::uint32_t mantissa = bits & 0x7FFFFFu;
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>(sign | 0x7E00u);
  if (exponent >= 31) return static_cast<std::uint16_t>(sign | 0x7C00u);
  if (exponent <= 0) {
    if (exponent < -10) return static_cast<std::uint16_t>(sign);
    mantissa |= 0x800000u;
    const int shift = 14 - exponent;
    const std::uint32_t half = 1u << (shift - 1), rest = mantissa & ((1u << shift) - 1);
    std::uint32_t out = mantissa >> shift;
    if (rest > half || (rest == half && (out & 1u))) ++out;
    return static_cast<std::uint16_t>(sign | out);
  }
  std::uint32_t out = static_cast<std::uint32_t>(exponent) << 10 | mantissa >> 13;
  const std::uint32_t rest = mantissa & 0x1FFFu;
  if (rest > 0x1000u || (rest == 0x1000u && (out & 1u))) ++out;  // may carry into the exponent, as it should
  return static_cast<std::uint16_t>(sign | out);
}

bool bits_of(task::Dtype dtype, double value, std::uint64_t* bits) {
  using enum task::Dtype;
  switch (dtype) {
    case kFloat64:
      *bits = std::bit_cast<std::uint64_t>(value);
      return true;
    case kFloat32:
      *bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
      return true;
    case kFloat16:
      *bits = half_bits(value);
      return true;
    case kBfloat16:
      *bits = bfloat16_bits(value);
      return true;
    case kBool:
      *bits = value != 0;
      return true;
    case kInt64:
    case kInt32:
    case kInt16:
    case kInt8:
    case kUint8:
      if (!(std::fabs(value) < 9.2e18)) return false;
      *bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
      return true;
    case kFloat8E4m3:
    case kFloat8E5m2:
      *bits = 0;
      return value == 0;
  }
  return false;
}

}  // namespace warpsmith::device
