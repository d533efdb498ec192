// Values of task inputs, as functions of a key and an index: no state, no order, so a check or a timed call
// can be made again from its key alone.
//
// They are drawn fast enough to be renewed before every timed call (as fast as memory is written), by mixing
// two fixed pools of prime lengths. Each element has the distribution asked for: a rotation of two normals is
// normal, the sum of two uniforms modulo one is uniform.
//
// The places in both pools are chosen anew for each block of 256 elements, by the draw's key and the block's
// number. With one pair of places a tensor each value would follow from three others (v[i] = v[i-P] + v[i-Q]
// - v[i-P-Q], P and Q the pools' sizes), and a candidate that knew it could do without reading most of its
// input. As it is, to learn a block's places from a few of its elements is a search through a pool, which
// takes far longer than reading the rest of its kilobyte, and another block's places are worth nothing
// without the key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "warpsmith/task/task.h"

namespace warpsmith::measure {

// What the elements of one tensor are made of, the same on every device
// (src/measure/answers/value_elements.h). Element j of a block is made of x = pool a[first + j] and y = pool
// b[second + j], where first, second and mask are the block's own, by `key`. Bits are (x ^ mask) + y modulo
// 2^32.
struct ValueDraw {
  enum class Kind {
    kNormal,     // base + x * x_scale + y * y_scale, from the pools of normals, in float
    kUniform,    // base + x_scale * (bits >> 8), from the pools of bits, in float
    kIntegers,   // low + (bits * range >> 32)
    kBernoulli,  // bits < range
    kSteps,      // base + x_scale * (bits * range >> 32), in float
    kConstant,   // base
    kHost,       // no kernel makes them
  };
  Kind kind = Kind::kConstant;
  std::uint64_t key = 0;
  float base = 0, x_scale = 0, y_scale = 0;
  std::int64_t low = 0;
  std::uint64_t range = 0;
};

// Thread-safe. One a process is enough; making it costs about 2 ms.
class ValueSource {
 public:
  ValueSource();
  ~ValueSource();

  // Whether no kernel can draw them: permutations, and what distributions alone may have. Throws as fill()
  // does.
  static bool drawn_by_host(const task::ValueSpec& values, const task::Dims& dims) {
    return draw(values, dims, 0).kind == ValueDraw::Kind::kHost;
  }
  // Throws as fill() does.
  static ValueDraw draw(const task::ValueSpec& values, const task::Dims& dims, std::uint64_t key);
  // The pools that a draw mixes: floats for kNormal, else 32 bits each. Behind its end each begins again, for
  // as many elements as a block can reach there.
  struct PoolView {
    std::span<const float> first_normal, second_normal;
    std::span<const std::uint32_t> first_bits, second_bits;
  };
  PoolView pools() const;

  // Fills `out` with a tensor of `dtype` and `shape` (contiguous; out.size() is its size in bytes). Kinds and
  // arguments:
  //   normal(mean = 0, deviation = 1) | uniform(low = 0, high = 1) | integers(low, high) with high excluded |
  //   zeros | ones | permutation: each row along the last axis is one of 0…n-1 | bernoulli(p = 0.5) |
  //   choice(a, b, …): each number as likely | mix(p, A, B): an element of A with probability p, else of B |
  //   sorted(A), descending(A): each row along the last axis in that order, NaN above all numbers |
  //   by_row(A): one value of A for all of a row
  // `dims`: what names in the arguments mean. Throws Error for a kind that is not known or arguments that
  // make no sense.
  void fill(const task::ValueSpec& values, task::Dtype dtype, const std::vector<std::int64_t>& shape,
            const task::Dims& dims, std::uint64_t key, std::span<std::byte> out) const;

 private:
  struct Pools;
  std::unique_ptr<Pools> pools_;
};

// Key of one input's values. `use` tells checks from timed calls, and each of them from the others.
std::uint64_t input_key(std::uint64_t seed, const task::Task& task, const task::Dims& dims,
                        const std::string& input, std::uint64_t use);

}  // namespace warpsmith::measure
