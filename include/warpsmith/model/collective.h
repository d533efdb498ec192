// Processes of one machine that train one model together (ranks): each has the whole model and a part of the
// batch, and owns a part of every flat buffer, whose optimiser state it alone holds (ZeRO, Rajbhandari et al.
// 2020).
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace warpsmith::model {

struct Part {
  std::int64_t begin = 0, count = 0;
  at::Tensor of(const at::Tensor& flat) const { return flat.narrow(0, begin, count); }
};

// Every rank makes the same calls in the same order. Sums are formed in the order of ranks, or in one that
// NCCL repeats. Throws Error where the other ranks cannot be reached.
class Collective {
 public:
  virtual ~Collective() = default;
  int rank() const { return rank_; }
  int size() const { return size_; }
  // What rank `of` owns of n elements: begins at a multiple of 16. (Here, since warpsmith-gpu.so has it,
  // too.)
  Part part(std::int64_t n, int of) const {
    const std::int64_t grain = 16, each = (n + grain * size_ - 1) / (grain * size_) * grain;
    const std::int64_t begin = std::min(n, each * of);
    return {begin, std::min(n, begin + each) - begin};
  }
  Part own_part(std::int64_t n) const { return part(n, rank_); }

  // Of a flat buffer: the own part becomes the sum over all ranks; what the others become is not said.
  virtual void reduce_parts(const at::Tensor& flat) = 0;
  // Every part becomes what its owner has there.
  virtual void gather_parts(const at::Tensor& flat) = 0;
  virtual void broadcast(const at::Tensor& flat, int root) = 0;
  // Over all ranks, element by element.
  virtual std::vector<double> sums(const std::vector<double>& values) = 0;

 protected:
  Collective(int rank, int size) : rank_(rank), size_(size) {}

 private:
  int rank_, size_;
};

}  // namespace warpsmith::model
