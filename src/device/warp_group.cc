#include "warp_group.h"

#include <algorithm>

#include "warpsmith/toolchain/twin_abi.h"

namespace warpsmith::device {

namespace {

// All ones: NaN in every floating-point type, -1 in integers. The other two are large numbers, one of either
// sign, in every type: fmaxf() and fminf() ignore a NaN.
constexpr std::uint64_t kUndefined[] = {0xFFFFFFFFFFFFFFFFull, 0x7BFF7BFF7BFF7BFFull, 0xFBFFFBFFFBFFFBFFull};

bool is_member(const WarpGroup& g, std::uint64_t lane) { return g.members >> lane & 1u; }

std::uint32_t combine(int op, std::uint32_t a, std::uint32_t b) {
  const auto sa = static_cast<std::int32_t>(a), sb = static_cast<std::int32_t>(b);
  switch (op) {
    case kWstwSum:
      return a + b;
    case kWstwMinU:
      return std::min(a, b);
    case kWstwMaxU:
      return std::max(a, b);
    case kWstwMinS:
      return static_cast<std::uint32_t>(std::min(sa, sb));
    case kWstwMaxS:
      return static_cast<std::uint32_t>(std::max(sa, sb));
    case kWstwBitAnd:
      return a & b;
    case kWstwBitOr:
      return a | b;
    default:
      return a ^ b;
  }
}

std::uint64_t reduce(int op, const WarpGroup& g) {
  bool first = true;
  std::uint32_t result = 0;
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    if (!is_member(g, lane)) continue;
    const auto value = static_cast<std::uint32_t>(g.values[lane]);
    result = first ? value : combine(op, result, value);
    first = false;
  }
  return result;
}

// Lanes of the group whose value satisfies `is`.
template <typename Test>
std::uint32_t lanes_where(const WarpGroup& g, Test is) {
  std::uint32_t lanes = 0;
  for (std::uint32_t lane = 0; lane < 32; ++lane)
    if (is_member(g, lane) && is(g.values[lane])) lanes |= 1u << lane;
  return lanes;
}

}  // namespace

void perform(int op, WarpGroup& g, std::uint64_t* undefined_reads) {
  const std::uint32_t set = lanes_where(g, [](std::uint64_t v) { return v != 0; });
  const std::uint64_t reduced = op >= kWstwSum ? reduce(op, g) : 0;
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    if (!is_member(g, lane)) continue;
    std::uint64_t& result = g.results[lane];
    switch (op) {
      case kWstwGather: {
        const std::uint64_t source = g.arguments[lane] & 31u;
        result = is_member(g, source) ? g.values[source] : kUndefined[(*undefined_reads)++ % 3];
        break;
      }
      case kWstwBallot:
        result = set;
        break;
      case kWstwAny:
        result = set != 0;
        break;
      case kWstwAll:
        result = set == g.members;
        break;
      case kWstwMatchAny:
        result = lanes_where(g, [&](std::uint64_t v) { return v == g.values[lane]; });
        break;
      default:
        result = reduced;
        break;
    }
  }
}

}  // namespace warpsmith::device
