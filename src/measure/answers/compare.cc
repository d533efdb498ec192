#include "warpsmith/measure/compare.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e5m2.h>
#include <c10/util/Half.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "warpsmith/base/error.h"

namespace warpsmith::measure {

namespace {

// Calls visit(T*) with a null pointer of the C++ type that stands for `dtype`.
template <typename Visit>
auto with_type(task::Dtype dtype, Visit visit) {
  using task::Dtype;
  switch (dtype) {
    case Dtype::kFloat64:
      return visit(static_cast<double*>(nullptr));
    case Dtype::kFloat32:
      return visit(static_cast<float*>(nullptr));
    case Dtype::kFloat16:
      return visit(static_cast<c10::Half*>(nullptr));
    case Dtype::kBfloat16:
      return visit(static_cast<c10::BFloat16*>(nullptr));
    case Dtype::kFloat8E4m3:
      return visit(static_cast<c10::Float8_e4m3fn*>(nullptr));
    case Dtype::kFloat8E5m2:
      return visit(static_cast<c10::Float8_e5m2*>(nullptr));
    case Dtype::kInt64:
      return visit(static_cast<std::int64_t*>(nullptr));
    case Dtype::kInt32:
      return visit(static_cast<std::int32_t*>(nullptr));
    case Dtype::kInt16:
      return visit(static_cast<std::int16_t*>(nullptr));
    case Dtype::kInt8:
      return visit(static_cast<std::int8_t*>(nullptr));
    case Dtype::kUint8:
    case Dtype::kBool:
      break;  // a bool is read as its byte: 2 is no right answer
  }
  return visit(static_cast<std::uint8_t*>(nullptr));
}

struct FloatFacts {
  double epsilon, smallest, largest;  // at 1; smallest normal; largest finite
};

FloatFacts facts(task::Dtype dtype) {
  using task::Dtype;
  switch (dtype) {
    case Dtype::kFloat64:
      return {0x1p-52, 0x1p-1022, std::numeric_limits<double>::max()};
    case Dtype::kFloat16:
      return {0x1p-10, 0x1p-14, 65504};
    case Dtype::kBfloat16:
      return {0x1p-7, 0x1p-126, 0x1.FEp127};
    case Dtype::kFloat8E4m3:
      return {0x1p-3, 0x1p-6, 448};
    case Dtype::kFloat8E5m2:
      return {0x1p-2, 0x1p-14, 57344};
    default:
      return {0x1p-23, 0x1p-126, std::numeric_limits<float>::max()};
  }
}

template <typename T>
double real(T value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(value);
  } else {
    return static_cast<double>(static_cast<float>(value));
  }
}

struct FloatRules {
  double bound, limit;  // overflow_limit() of the output's type
  bool signed_zeros = false;
};

FloatRules rules(const OutputValues& expected, double bound) {
  return {bound, overflow_limit(expected.dtype), expected.signed_zeros};
}

// How far apart, or infinity where one is NaN or infinite and the other is not the same.
double distance(double got, double expected, const FloatRules& rules) {
  if (std::isnan(expected)) return std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  if (std::abs(expected) > rules.limit)
    expected = std::copysign(std::numeric_limits<double>::infinity(), expected);
  if (std::isinf(expected)) return got == expected ? 0 : std::numeric_limits<double>::infinity();
  if (!std::isfinite(got)) return std::numeric_limits<double>::infinity();
  if (rules.signed_zeros && got == 0 && expected == 0 && std::signbit(got) != std::signbit(expected))
    return std::numeric_limits<double>::infinity();
  return std::abs(got - expected);
}

template <typename T>
Comparison compare_reals(const T* got, const std::vector<double>& expected, const FloatRules& rules) {
  Comparison result;
  // One pass without branches settles the usual case; NaN fails the test and goes to the second.
  double max_error = 0;
  bool clean = true;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(real(got[i]) - expected[i]);
    clean &= error <= rules.bound;
    max_error = std::max(max_error, error);
  }
  if (clean && !rules.signed_zeros) {
    result.max_error = max_error;
    return result;
  }
  double worst = -1;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = distance(real(got[i]), expected[i], rules);
    if (std::isfinite(error)) result.max_error = std::max(result.max_error, error);
    if (error <= rules.bound) continue;
    ++result.wrong;
    if (error <= worst) continue;
    worst = error;
    result.worst = static_cast<std::int64_t>(i);
    result.got = real(got[i]);
    result.expected = expected[i];
  }
  result.agrees = result.wrong == 0;
  return result;
}

template <typename T>
Comparison compare_integers(const T* got, const std::vector<std::int64_t>& expected) {
  Comparison result;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::int64_t value = static_cast<std::int64_t>(got[i]);
    if (value == expected[i]) continue;
    // In doubles: the difference of two int64 may overflow.
    const double error = std::abs(static_cast<double>(value) - static_cast<double>(expected[i]));
    ++result.wrong;
    if (result.worst >= 0 && error <= result.max_error) continue;
    result.max_error = error;
    result.worst = static_cast<std::int64_t>(i);
    result.got = static_cast<double>(value);
    result.expected = static_cast<double>(expected[i]);
  }
  result.agrees = result.wrong == 0;
  return result;
}

std::int64_t elements(const OutputValues& values) {
  return static_cast<std::int64_t>(values.reals.size() + values.integers.size());
}

}  // namespace

Comparison compare(std::span<const std::byte> got, const OutputValues& expected, double bound) {
  if (got.size() != static_cast<std::size_t>(elements(expected)) * task::size_of(expected.dtype))
    throw Error("compare: the output has " + std::to_string(got.size()) + " bytes, expected are " +
                std::to_string(elements(expected)) + " elements");
  return with_type(expected.dtype, [&]<typename T>(T*) {
    const T* typed = reinterpret_cast<const T*>(got.data());
    if constexpr (std::is_integral_v<T>) {
      return compare_integers(typed, expected.integers);
    } else {
      return compare_reals(typed, expected.reals, rules(expected, bound));
    }
  });
}

Comparison compare(const OutputValues& got, const OutputValues& expected, double bound) {
  if (elements(got) != elements(expected)) throw Error("compare: the outputs differ in size");
  if (!task::is_floating(expected.dtype)) return compare_integers(got.integers.data(), expected.integers);
  return compare_reals(got.reals.data(), expected.reals, rules(expected, bound));
}

std::string describe(const Comparison& comparison, const std::string& name, const OutputValues& expected) {
  return describe(comparison, name, expected.dtype, expected.shape);
}

std::string describe(const Comparison& comparison, const std::string& name, task::Dtype dtype,
                     const std::vector<std::int64_t>& shape) {
  std::string index;
  std::int64_t rest = comparison.worst, count = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    index = std::to_string(rest % shape[axis]) + (index.empty() ? "" : ", ") + index;
    rest /= shape[axis];
    count *= shape[axis];
  }
  const auto number = [&](double value) -> std::string {
    if (std::isnan(value)) return "nan";  // its sign says nothing
    return task::is_floating(dtype) ? fmt::format("{:.7g}", value) : fmt::format("{:.0f}", value);
  };
  return fmt::format("{}[{}]: {} where {} was expected ({} of {} elements are wrong)", name, index,
                     number(comparison.got), number(comparison.expected), comparison.wrong, count);
}

void add_part(Comparison& whole, const Comparison& part, std::int64_t first) {
  const auto error = [](const Comparison& c) {  // of its worst element
    const double distance = std::abs(c.got - c.expected);
    return std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance;
  };
  if (part.worst >= 0 && (whole.worst < 0 || error(part) > error(whole))) {
    whole.worst = first + part.worst;
    whole.got = part.got;
    whole.expected = part.expected;
  }
  whole.agrees = whole.agrees && part.agrees;
  whole.wrong += part.wrong;
  whole.max_error = std::max(whole.max_error, part.max_error);
}

double default_bound(const OutputValues& reference, const OutputValues& oracle) {
  if (!task::is_floating(oracle.dtype)) return 0;
  const FloatRules exact = rules(oracle, 0);
  double error = 0, scale = 0;
  for (std::size_t i = 0; i < oracle.reals.size(); ++i) {
    const double expected = oracle.reals[i];
    if (std::isfinite(expected) && std::abs(expected) <= exact.limit)
      scale = std::max(scale, std::abs(expected));
    const double distance_here = distance(reference.reals[i], expected, exact);
    if (std::isfinite(distance_here)) error = std::max(error, distance_here);
  }
  return default_bound(error, scale, oracle.dtype);
}

double default_bound(double error, double scale, task::Dtype dtype) {
  const FloatFacts f = facts(dtype);
  const double ulp = std::ldexp(f.epsilon, std::ilogb(std::max(scale, f.smallest)));
  return 10 * std::max(error, 2 * ulp);
}

double tf32_bound(double error) { return 3 * error; }

double overflow_limit(task::Dtype dtype) {
  const FloatFacts f = facts(dtype);
  return f.largest * (1 + f.epsilon / 4);
}

OutputValues decode(std::span<const std::byte> bytes, task::Dtype dtype, std::vector<std::int64_t> shape) {
  OutputValues values;
  values.dtype = dtype;
  values.shape = std::move(shape);
  with_type(dtype, [&]<typename T>(T*) {
    const T* typed = reinterpret_cast<const T*>(bytes.data());
    const std::size_t count = bytes.size() / sizeof(T);
    for (std::size_t i = 0; i < count; ++i) {
      if constexpr (std::is_integral_v<T>) {
        values.integers.push_back(static_cast<std::int64_t>(typed[i]));
      } else {
        values.reals.push_back(real(typed[i]));
      }
    }
  });
  return values;
}

}  // namespace warpsmith::measure
