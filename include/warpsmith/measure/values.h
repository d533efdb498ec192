// Values of task inputs, as functions of a key and an index: no state, no order, so a check or a timed call
// can be made again from its key alone.
//
// They are drawn fast enough to be renewed before every timed call (as fast as memory is written), by mixing
// two fixed pools of prime lengths at offsets that the key chooses. Each element has the distribution asked
// for: a rotation of two normals is normal, the sum of two uniforms modulo one is uniform. The pattern
// repeats after a billion elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "warpsmith/task/task.h"

namespace warpsmith::measure {

// Thread-safe. One a process is enough; making it costs about 2 ms.
class ValueSource {
 public:
  ValueSource();
  ~ValueSource();

  // Fills `out` with a tensor of `dtype` and `shape` (contiguous; out.size() is its size in bytes). Kinds and
  // arguments:
  //   normal(mean = 0, deviation = 1) | uniform(low = 0, high = 1) | integers(low, high) with high excluded |
  //   zeros | ones | permutation: each row along the last axis is one of 0…n-1 | bernoulli(p = 0.5)
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
