#include "warpsmith/measure/values.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e5m2.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "answers/value_elements.h"
#include "warpsmith/base/random.h"

namespace warpsmith::measure {

namespace {

static_assert(mix_of(42) == mix64(42), "both are SplitMix64");

double argument(const task::ValueSpec& values, std::size_t index, double otherwise, const task::Dims& dims) {
  if (index >= values.arguments.size()) return otherwise;
  const task::Expression& expression = values.arguments[index];
  try {
    return expression.evaluate_real(task::dims_scope(dims));
  } catch (const task::ExpressionError& e) {
    throw Error("values " + values.kind + ": `" + expression.text() + "`: " + e.message);
  }
}

// The narrow float types come from float alone.
template <typename T, typename From>
T convert(From value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(value);
  } else {
    return static_cast<T>(static_cast<float>(value));
  }
}

// Writes `count` elements made block by block: make(places, length, Element* block).
template <typename Element, typename T, typename Make>
void write_blocks(std::uint64_t key, std::size_t count, T* out, Make make) {
  std::array<Element, kValueBlock> block;
  for (std::size_t begin = 0; begin < count; begin += kValueBlock) {
    const std::size_t length = std::min<std::size_t>(kValueBlock, count - begin);
    const BlockPlaces places = places_of(key, begin / kValueBlock);
    if constexpr (std::is_same_v<T, Element>) {
      make(places, length, out + begin);
    } else {
      make(places, length, block.data());
      for (std::size_t i = 0; i < length; ++i) out[begin + i] = convert<T>(block[i]);
    }
  }
}

// NaN lies above all numbers.
template <typename T>
bool is_less(const T& a, const T& b) {
  if constexpr (std::is_integral_v<T>) {
    return a < b;
  } else {
    const double x = static_cast<double>(a), y = static_cast<double>(b);
    return x < y || (std::isnan(y) && !std::isnan(x));
  }
}

// The one order of a row that the key asks for.
template <typename T>
void write_permutation(std::uint64_t key, std::span<T> row) {
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = convert<T>(i);
  Random random(key);
  for (std::size_t i = row.size(); i > 1; --i) std::swap(row[i - 1], row[random.below(i)]);
}

}  // namespace

struct ValueSource::Pools {
  std::vector<float> first_normal, second_normal;
  std::vector<std::uint32_t> first_bits, second_bits;

  // Elements that are made of bits: make(bits).
  template <typename Element, typename T, typename Make>
  void write_bits(std::uint64_t key, std::span<T> out, Make make) const {
    write_blocks<Element>(key, out.size(), out.data(),
                          [&](const BlockPlaces& places, std::size_t length, Element* block) {
                            const std::uint32_t* x = first_bits.data() + places.first;
                            const std::uint32_t* y = second_bits.data() + places.second;
                            for (std::size_t i = 0; i < length; ++i)
                              block[i] = make(bits_of(x[i], y[i], places.mask));
                          });
  }

  template <typename T>
  void fill(const task::ValueSpec& values, const std::vector<std::int64_t>& shape, const task::Dims& dims,
            std::uint64_t key, std::span<T> out) const;
  // The same for what no kernel draws.
  template <typename T>
  void fill_by_host(const task::ValueSpec& values, const std::vector<std::int64_t>& shape,
                    const task::Dims& dims, std::uint64_t key, std::span<T> out) const;
};

ValueDraw ValueSource::draw(const task::ValueSpec& values, const task::Dims& dims, std::uint64_t key) {
  const auto number = [&](std::size_t index, double otherwise) {
    return argument(values, index, otherwise, dims);
  };
  ValueDraw draw;
  Random random(key);
  draw.key = random();
  if (values.kind == "normal") {
    const float deviation = static_cast<float>(number(1, 1));
    draw.kind = ValueDraw::Kind::kNormal;
    draw.base = static_cast<float>(number(0, 0));
    const double angle = 6.283185307179586 * random.uniform();
    draw.x_scale = static_cast<float>(std::cos(angle)) * deviation;
    draw.y_scale = static_cast<float>(std::sin(angle)) * deviation;
  } else if (values.kind == "uniform") {
    const double low = number(0, 0), high = number(1, 1);
    if (!(low <= high)) throw Error("values uniform: low is above high");
    draw.kind = ValueDraw::Kind::kUniform;
    draw.base = static_cast<float>(low);
    draw.x_scale = static_cast<float>((high - low) * 0x1.0p-24);
  } else if (values.kind == "integers") {
    const double low = number(0, 0), high = number(1, 2);
    if (!(low < high) || high - low > 4294967296.0)
      throw Error("values integers: the range is empty or over 2^32");
    draw.kind = ValueDraw::Kind::kIntegers;
    draw.low = static_cast<std::int64_t>(low);
    draw.range = static_cast<std::uint64_t>(high - low);
  } else if (values.kind == "bernoulli") {
    const double p = number(0, 0.5);
    if (!(p >= 0 && p <= 1)) throw Error("values bernoulli: the probability is not within [0, 1]");
    draw.kind = ValueDraw::Kind::kBernoulli;
    draw.range = static_cast<std::uint64_t>(p * 4294967296.0);
  } else if (const auto even = values.kind == "choice" ? task::even_choice(values, dims) : std::nullopt;
             even) {
    draw.kind = ValueDraw::Kind::kSteps;
    draw.base = even->base;
    draw.x_scale = even->step;
    draw.range = even->count;
  } else if (values.kind == "permutation" || values.kind == "choice" || !values.parts.empty()) {
    draw.kind = ValueDraw::Kind::kHost;
  } else if (values.kind == "zeros" || values.kind == "ones") {
    draw.base = values.kind == "ones" ? 1.0f : 0.0f;
  } else {
    throw Error("unknown kind of values `" + values.kind + "`");
  }
  return draw;
}

ValueSource::PoolView ValueSource::pools() const {
  return {pools_->first_normal, pools_->second_normal, pools_->first_bits, pools_->second_bits};
}

template <typename T>
void ValueSource::Pools::fill(const task::ValueSpec& values, const std::vector<std::int64_t>& shape,
                              const task::Dims& dims, std::uint64_t key, std::span<T> out) const {
  const ValueDraw draw = ValueSource::draw(values, dims, key);
  // Copies: a block that is written might alias the draw.
  const float base = draw.base, c = draw.x_scale, s = draw.y_scale;
  const std::int64_t low = draw.low;
  const std::uint64_t range = draw.range;
  using Kind = ValueDraw::Kind;
  switch (draw.kind) {
    case Kind::kNormal:
      return write_blocks<float>(draw.key, out.size(), out.data(),
                                 [&](const BlockPlaces& places, std::size_t length, float* block) {
                                   const float* x = first_normal.data() + places.first;
                                   const float* y = second_normal.data() + places.second;
                                   for (std::size_t i = 0; i < length; ++i)
                                     block[i] = normal_of(x[i], y[i], base, c, s);
                                 });
    case Kind::kUniform:
      return write_bits<float>(draw.key, out, [=](unsigned bits) { return uniform_of(bits, base, c); });
    case Kind::kIntegers:
      return write_bits<std::int64_t>(draw.key, out,
                                      [=](unsigned bits) { return integer_of(bits, low, range); });
    case Kind::kBernoulli:
      return write_bits<std::int32_t>(draw.key, out,
                                      [=](unsigned bits) { return bernoulli_of(bits, range); });
    case Kind::kSteps:
      return write_bits<float>(draw.key, out, [=](unsigned bits) { return step_of(bits, base, c, range); });
    case Kind::kHost:
      return fill_by_host(values, shape, dims, draw.key, out);
    case Kind::kConstant:
      std::fill(out.begin(), out.end(), convert<T>(base));
  }
}

template <typename T>
void ValueSource::Pools::fill_by_host(const task::ValueSpec& values, const std::vector<std::int64_t>& shape,
                                      const task::Dims& dims, std::uint64_t key, std::span<T> out) const {
  if (out.empty()) return;
  const std::size_t row_size = shape.empty() ? 1 : static_cast<std::size_t>(shape.back());
  const auto each_row = [&](auto visit) {
    for (std::size_t begin = 0; begin < out.size(); begin += row_size)
      visit(begin, out.subspan(begin, row_size));
  };
  const auto fill_part = [&](std::size_t i, const std::vector<std::int64_t>& part_shape, std::span<T> part) {
    fill(values.parts.at(i), part_shape, dims, random_key({key, i}), part);
  };
  if (values.kind == "permutation") {
    each_row([&](std::size_t begin, std::span<T> row) { write_permutation(random_key({key, begin}), row); });
  } else if (values.kind == "choice") {
    const std::size_t count = values.arguments.size();
    const auto numbers = std::make_unique<T[]>(count);
    for (std::size_t i = 0; i < count; ++i) numbers[i] = convert<T>(argument(values, i, 0, dims));
    write_bits<T>(key, out, [&](unsigned bits) { return numbers[integer_of(bits, 0, count)]; });
  } else if (values.kind == "mix") {
    const auto others = std::make_unique<T[]>(out.size());
    fill_part(0, shape, {others.get(), out.size()});
    fill_part(1, shape, out);
    std::vector<std::uint8_t> taken(out.size());
    const auto range = static_cast<std::uint64_t>(argument(values, 0, 0, dims) * 4294967296.0);
    write_bits<std::int32_t>(key, std::span(taken), [=](unsigned bits) { return bernoulli_of(bits, range); });
    for (std::size_t i = 0; i < out.size(); ++i)
      if (taken[i] != 0) out[i] = others[i];
  } else if (values.kind == "by_row") {
    const auto of_row = std::make_unique<T[]>(out.size() / row_size);
    fill_part(0, {static_cast<std::int64_t>(out.size() / row_size)}, {of_row.get(), out.size() / row_size});
    each_row([&](std::size_t begin, std::span<T> row) {
      std::fill(row.begin(), row.end(), of_row[begin / row_size]);
    });
  } else if (values.kind == "sorted" || values.kind == "descending") {
    fill_part(0, shape, out);
    each_row([&](std::size_t, std::span<T> row) {
      std::stable_sort(row.begin(), row.end(), is_less<T>);
      if (values.kind == "descending") std::reverse(row.begin(), row.end());
    });
  } else {
    throw Error("unknown kind of values `" + values.kind + "`");
  }
}

ValueSource::ValueSource() : pools_(std::make_unique<Pools>()) {
  Random normal(random_key({name_key("normal values")}));
  Random bits(random_key({name_key("bits of values")}));
  const auto make_pool = [](auto& pool, std::size_t size, auto next) {
    pool.resize(size);
    for (auto& value : pool) value = next();
    for (std::size_t i = 0; i < kPoolOverhang; ++i) pool.push_back(pool[i]);
  };
  const auto next_normal = [&] { return static_cast<float>(normal.normal()); };
  const auto next_bits = [&] { return static_cast<std::uint32_t>(bits() >> 32); };
  make_pool(pools_->first_normal, kFirstPool, next_normal);
  make_pool(pools_->second_normal, kSecondPool, next_normal);
  make_pool(pools_->first_bits, kFirstPool, next_bits);
  make_pool(pools_->second_bits, kSecondPool, next_bits);
}

ValueSource::~ValueSource() = default;

void ValueSource::fill(const task::ValueSpec& values, task::Dtype dtype,
                       const std::vector<std::int64_t>& shape, const task::Dims& dims, std::uint64_t key,
                       std::span<std::byte> out) const {
  const auto as = [&]<typename T>(T*) {
    const std::span<T> typed(reinterpret_cast<T*>(out.data()), out.size() / sizeof(T));
    pools_->fill<T>(values, shape, dims, key, typed);
  };
  using task::Dtype;
  switch (dtype) {
    case Dtype::kFloat64:
      return as(static_cast<double*>(nullptr));
    case Dtype::kFloat32:
      return as(static_cast<float*>(nullptr));
    case Dtype::kFloat16:
      return as(static_cast<c10::Half*>(nullptr));
    case Dtype::kBfloat16:
      return as(static_cast<c10::BFloat16*>(nullptr));
    case Dtype::kFloat8E4m3:
      return as(static_cast<c10::Float8_e4m3fn*>(nullptr));
    case Dtype::kFloat8E5m2:
      return as(static_cast<c10::Float8_e5m2*>(nullptr));
    case Dtype::kInt64:
      return as(static_cast<std::int64_t*>(nullptr));
    case Dtype::kInt32:
      return as(static_cast<std::int32_t*>(nullptr));
    case Dtype::kInt16:
      return as(static_cast<std::int16_t*>(nullptr));
    case Dtype::kInt8:
      return as(static_cast<std::int8_t*>(nullptr));
    case Dtype::kUint8:
      return as(static_cast<std::uint8_t*>(nullptr));
    case Dtype::kBool:
      return as(static_cast<bool*>(nullptr));
  }
}

std::uint64_t input_key(std::uint64_t seed, const task::Task& task, const task::Dims& dims,
                        const std::string& input, std::uint64_t use) {
  std::uint64_t shape = 0;
  for (const auto& [name, size] : dims)
    shape = random_key({shape, name_key(name), static_cast<std::uint64_t>(size)});
  return random_key({seed, name_key(task.id), shape, name_key(input), use});
}

}  // namespace warpsmith::measure
