// An optimiser's moments: in float32, or in a byte each.
//
// A byte stands for a power of its share of the largest value among 256 neighbours, as in 8-bit optimisers
// (Dettmers et al. 2022, who use a table): q = round(127 sign(x) sqrt(|x| / most)) of values with a sign, and
// q = round(255 (x / most)^(1/4)) of values without, at least 1 where x is not 0, for a square that is taken
// for 0 would make a step without bound. A value that was read and is put back keeps its byte.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace warpsmith::learn {

class Moments {
 public:
  static constexpr std::int64_t kBlock = 256;
  // In bytes they are best read and put so many at a time: what is computed takes several times as much.
  static constexpr std::int64_t kAtATime = kBlock << 14;

  Moments() = default;
  // Of n elements, whose values are not said. `options`: where, in what memory.
  Moments(std::int64_t n, bool bytes, bool has_sign, const at::TensorOptions& options);
  // `values`: [n] float32; in a byte each they are not kept.
  Moments(const at::Tensor& values, bool bytes, bool has_sign);
  // Elements begin … begin + n: in float32 a view that may be written to, else a copy that put() takes back.
  // In bytes `begin` is a multiple of kBlock, and so is n but at the end.
  at::Tensor read(std::int64_t begin, std::int64_t n) const;
  void put(std::int64_t begin, const at::Tensor& values);
  at::Tensor all() const { return read(0, n_); }
  // Over the memory of the first n elements.
  Moments first_of(std::int64_t n) const;
  // All that it holds, in one order.
  std::vector<at::Tensor> tensors() const;
  std::int64_t bytes() const;

 private:
  std::int64_t n_ = 0;
  bool has_sign_ = false;
  at::Tensor values_;          // float32; else undefined
  at::Tensor codes_, scales_;  // [n], [n / kBlock] rounded up
};

}  // namespace warpsmith::learn
