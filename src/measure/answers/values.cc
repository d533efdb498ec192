#include "warpsmith/measure/values.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e5m2.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "warpsmith/base/random.h"

namespace warpsmith::measure {

namespace {

// Primes, so that no power-of-two row length lines up with a pool, and small enough for both to stay in a
// second-level cache.
constexpr std::size_t kFirst = 32749, kSecond = 32719;
constexpr std::size_t kBlock = 1024;  // elements made at a time: they stay in the first-level cache

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

// Writes `count` elements made block by block: make(first index, length, float* block).
template <typename T, typename Element, typename Make>
void write_blocks(std::size_t count, T* out, Make make) {
  std::array<Element, kBlock> block;
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t length = std::min(kBlock, count - begin);
    if constexpr (std::is_same_v<T, Element>) {
      make(begin, length, out + begin);
    } else {
      make(begin, length, block.data());
      for (std::size_t i = 0; i < length; ++i) out[begin + i] = convert<T>(block[i]);
    }
  }
}

// Calls run(position in out, length, first place, second place) for stretches in which neither pool wraps.
template <typename Run>
void stretches(std::size_t begin, std::size_t length, std::size_t first, std::size_t second, Run run) {
  std::size_t done = 0;
  while (done < length) {
    const std::size_t a = (begin + done + first) % kFirst, b = (begin + done + second) % kSecond;
    const std::size_t n = std::min({length - done, kFirst - a, kSecond - b});
    run(done, n, a, b);
    done += n;
  }
}

}  // namespace

struct ValueSource::Pools {
  std::vector<float> first_normal, second_normal;
  std::vector<std::uint32_t> first_bits, second_bits;
  mutable std::mutex mutex;
  mutable std::map<std::size_t, std::shared_ptr<const std::vector<std::uint32_t>>> permutations;

  void normals(const ValueDraw& draw, std::size_t begin, std::size_t length, float* out) const {
    const float mean = draw.base, c = draw.x_scale, s = draw.y_scale;
    stretches(begin, length, draw.first, draw.second,
              [&](std::size_t at, std::size_t n, std::size_t a, std::size_t b) {
                const float* x = first_normal.data() + a;
                const float* y = second_normal.data() + b;
                for (std::size_t i = 0; i < n; ++i) out[at + i] = mean + c * x[i] + s * y[i];
              });
  }

  void bits(const ValueDraw& draw, std::size_t begin, std::size_t length, std::uint32_t* out) const {
    const std::uint32_t shift = draw.shift;
    stretches(begin, length, draw.first, draw.second,
              [&](std::size_t at, std::size_t n, std::size_t a, std::size_t b) {
                const std::uint32_t* x = first_bits.data() + a;
                const std::uint32_t* y = second_bits.data() + b;
                for (std::size_t i = 0; i < n; ++i) out[at + i] = x[i] + y[i] + shift;
              });
  }

  // One permutation of each length, drawn once; the key turns it (fill_permutation).
  std::shared_ptr<const std::vector<std::uint32_t>> permutation(std::size_t n) const {
    const std::lock_guard lock(mutex);
    auto& slot = permutations[n];
    if (!slot) {
      std::vector<std::uint32_t> order(n);
      std::iota(order.begin(), order.end(), 0u);
      Random random(random_key({name_key("permutation"), n}));
      for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
      slot = std::make_shared<const std::vector<std::uint32_t>>(std::move(order));
    }
    return slot;
  }

  template <typename T>
  void fill(const task::ValueSpec& values, const std::vector<std::int64_t>& shape, const task::Dims& dims,
            std::uint64_t key, std::span<T> out) const;
  template <typename T>
  void fill_rows(const std::vector<std::int64_t>& shape, std::uint64_t key, std::span<T> out) const;
};

ValueDraw ValueSource::draw(const task::ValueSpec& values, const task::Dims& dims, std::uint64_t key) {
  const auto number = [&](std::size_t index, double otherwise) {
    return argument(values, index, otherwise, dims);
  };
  ValueDraw draw;
  Random random(key);
  const auto places = [&] {
    draw.first = static_cast<std::uint32_t>(random.below(kFirst));
    draw.second = static_cast<std::uint32_t>(random.below(kSecond));
  };
  const auto bits = [&](ValueDraw::Kind kind) {
    draw.kind = kind;
    places();
    draw.shift = static_cast<std::uint32_t>(random() >> 32);
  };
  if (values.kind == "normal") {
    const float deviation = static_cast<float>(number(1, 1));
    draw.kind = ValueDraw::Kind::kNormal;
    draw.base = static_cast<float>(number(0, 0));
    places();
    const double angle = 6.283185307179586 * random.uniform();
    draw.x_scale = static_cast<float>(std::cos(angle)) * deviation;
    draw.y_scale = static_cast<float>(std::sin(angle)) * deviation;
  } else if (values.kind == "uniform") {
    const double low = number(0, 0), high = number(1, 1);
    if (!(low <= high)) throw Error("values uniform: low is above high");
    bits(ValueDraw::Kind::kUniform);
    draw.base = static_cast<float>(low);
    draw.x_scale = static_cast<float>((high - low) * 0x1.0p-24);
  } else if (values.kind == "integers") {
    const double low = number(0, 0), high = number(1, 2);
    if (!(low < high) || high - low > 4294967296.0)
      throw Error("values integers: the range is empty or over 2^32");
    bits(ValueDraw::Kind::kIntegers);
    draw.low = static_cast<std::int64_t>(low);
    draw.range = static_cast<std::uint64_t>(high - low);
  } else if (values.kind == "bernoulli") {
    const double p = number(0, 0.5);
    if (!(p >= 0 && p <= 1)) throw Error("values bernoulli: the probability is not within [0, 1]");
    bits(ValueDraw::Kind::kBernoulli);
    draw.range = static_cast<std::uint64_t>(p * 4294967296.0);
  } else if (values.kind == "permutation") {
    draw.kind = ValueDraw::Kind::kRows;
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
  const float base = draw.base, step = draw.x_scale;
  const std::int64_t low = draw.low;
  const std::uint64_t range = draw.range;
  std::array<std::uint32_t, kBlock> raw;
  using Kind = ValueDraw::Kind;
  switch (draw.kind) {
    case Kind::kNormal:
      return write_blocks<T, float>(
          out.size(), out.data(),
          [&](std::size_t begin, std::size_t length, float* block) { normals(draw, begin, length, block); });
    case Kind::kUniform:
      return write_blocks<T, float>(
          out.size(), out.data(), [&](std::size_t begin, std::size_t length, float* block) {
            bits(draw, begin, length, raw.data());
            for (std::size_t i = 0; i < length; ++i)
              block[i] = base + step * static_cast<float>(static_cast<std::int32_t>(raw[i] >> 8));
          });
    case Kind::kIntegers:
      return write_blocks<T, std::int64_t>(
          out.size(), out.data(), [&](std::size_t begin, std::size_t length, std::int64_t* block) {
            bits(draw, begin, length, raw.data());
            for (std::size_t i = 0; i < length; ++i)
              block[i] = low + static_cast<std::int64_t>((raw[i] * range) >> 32);
          });
    case Kind::kBernoulli:
      return write_blocks<T, std::int32_t>(out.size(), out.data(),
                                           [&](std::size_t begin, std::size_t length, std::int32_t* block) {
                                             bits(draw, begin, length, raw.data());
                                             for (std::size_t i = 0; i < length; ++i)
                                               block[i] = raw[i] < range ? 1 : 0;
                                           });
    case Kind::kRows:
      return fill_rows(shape, key, out);
    case Kind::kConstant:
      std::fill(out.begin(), out.end(), convert<T>(base));
  }
}

// Turned in place and in value: still a permutation, and another one in each row and for each key.
template <typename T>
void ValueSource::Pools::fill_rows(const std::vector<std::int64_t>& shape, std::uint64_t key,
                                   std::span<T> out) const {
  const std::size_t n = shape.empty() ? 1 : static_cast<std::size_t>(shape.back());
  if (n == 0) return;
  const auto order = permutation(n);
  for (std::size_t row = 0; row * n < out.size(); ++row) {
    Random random(random_key({key, row}));
    const std::size_t place = random.below(n), value = random.below(n);
    for (std::size_t i = 0; i < n; ++i) {
      std::size_t from = i + place;
      if (from >= n) from -= n;
      std::size_t to = (*order)[from] + value;
      if (to >= n) to -= n;
      out[row * n + i] = convert<T>(to);
    }
  }
}

ValueSource::ValueSource() : pools_(std::make_unique<Pools>()) {
  Random normal(random_key({name_key("normal values")}));
  Random bits(random_key({name_key("bits of values")}));
  const auto fill_normal = [&](std::vector<float>& pool, std::size_t size) {
    pool.resize(size);
    for (float& value : pool) value = static_cast<float>(normal.normal());
  };
  const auto fill_bits = [&](std::vector<std::uint32_t>& pool, std::size_t size) {
    pool.resize(size);
    for (std::uint32_t& value : pool) value = static_cast<std::uint32_t>(bits() >> 32);
  };
  fill_normal(pools_->first_normal, kFirst);
  fill_normal(pools_->second_normal, kSecond);
  fill_bits(pools_->first_bits, kFirst);
  fill_bits(pools_->second_bits, kSecond);
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
