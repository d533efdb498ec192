// Whether a candidate's output is right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "warpsmith/measure/reference.h"
#include "warpsmith/task/task.h"

namespace warpsmith::measure {

struct Comparison {
  bool agrees = true;
  double max_error = 0;    // over the elements that are finite in both; 0 for integers that agree
  std::int64_t wrong = 0;  // elements beyond the bound
  std::int64_t worst =
      -1;  // flat index of the worst of them (of equals the first); a wrong NaN or infinity is worst of all
  double got = 0, expected = 0;  // there; for integers also exact below 2^53
};

// `expected` in float64 or int64; floating values agree within `bound` (absolute), integers and bools
// exactly. Where the expected value is NaN only NaN agrees, of whatever sign and payload; where it is
// infinite, or rounds to infinity in `expected.dtype`, only that infinity does; where it is a zero and
// `expected.signed_zeros` holds, no zero of the other sign does. `got`: the bytes of a tensor of that dtype
// and shape.
Comparison compare(std::span<const std::byte> got, const OutputValues& expected, double bound);

// Of a bound, where what a timed call gives is compared with the reference in its own precision, whose error
// is a tenth of the default bound.
inline constexpr double kBoundOfTimed = 1.1;

// The same between two arrays of values, as a reference returns them.
Comparison compare(const OutputValues& got, const OutputValues& expected, double bound);

// Adds what was found of a part of an output, whose first element is number `first` of it.
void add_part(Comparison& whole, const Comparison& part, std::int64_t first);

// "out[3, 5]: 1.25 where 1.5 was expected (17 of 4096 elements are wrong)"
std::string describe(const Comparison& comparison, const std::string& name, task::Dtype dtype,
                     const std::vector<std::int64_t>& shape);
std::string describe(const Comparison& comparison, const std::string& name, const OutputValues& expected);

// Ten times the larger of the reference's own error against the oracle, and 2 ulp of `oracle.dtype` at the
// scale of the output (its largest finite absolute value). 0 for integers.
double default_bound(const OutputValues& reference, const OutputValues& oracle);
double default_bound(double error, double scale, task::Dtype dtype);  // of a floating type
// Three times what TF32's rounding of the inputs costs the reference: another order of sums may cost as much
// again, and bfloat16 costs eight times as much.
double tf32_bound(double error);
// Absolute values above this round to infinity in `dtype`, which is a floating type: half an ulp over its
// largest number.
double overflow_limit(task::Dtype dtype);

// Bytes as plain numbers.
OutputValues decode(std::span<const std::byte> bytes, task::Dtype dtype, std::vector<std::int64_t> shape);

}  // namespace warpsmith::measure
