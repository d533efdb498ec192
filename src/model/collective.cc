#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>

#include "rank_memory.h"

namespace warpsmith::model {

namespace {

// Buffers go through the slots piece by piece.
class ByMemory : public Collective {
 public:
  ByMemory(RankMemory& shared, int rank, int size) : Collective(rank, size), shared_(shared) {}

  void reduce_parts(const at::Tensor& flat) override {
    // All ranks' pieces of every part in turn, of which the owner forms the sum.
    const std::int64_t piece = pieces_of(flat);
    for (int owner = 0; owner < size(); ++owner) {
      const Part whole = part(flat.numel(), owner);
      for (std::int64_t at = 0; at < whole.count; at += piece) {
        const at::Tensor here = flat.narrow(0, whole.begin + at, std::min(piece, whole.count - at));
        slot(rank(), here).copy_(here);
        shared_.wait();
        if (owner == rank()) {
          at::Tensor sum = slot(0, here).to(at::kDouble);
          for (int r = 1; r < size(); ++r) sum.add_(slot(r, here));
          at::Tensor(here).copy_(sum);
        }
        shared_.wait();
      }
    }
  }
  void gather_parts(const at::Tensor& flat) override {
    for (int owner = 0; owner < size(); ++owner) broadcast(part(flat.numel(), owner).of(flat), owner);
  }
  void broadcast(const at::Tensor& flat, int root) override {
    const std::int64_t piece = pieces_of(flat);
    for (std::int64_t at = 0; at < flat.numel(); at += piece) {
      const at::Tensor here = flat.narrow(0, at, std::min(piece, flat.numel() - at));
      if (root == rank()) slot(root, here).copy_(here);
      shared_.wait();
      if (root != rank()) at::Tensor(here).copy_(slot(root, here));
      shared_.wait();
    }
  }
  std::vector<double> sums(const std::vector<double>& values) override {
    std::memcpy(shared_.slot(rank()), values.data(), values.size() * sizeof(double));
    shared_.wait();
    std::vector<double> all(values.size(), 0.0);
    for (int r = 0; r < size(); ++r)
      for (std::size_t i = 0; i < all.size(); ++i) all[i] += static_cast<const double*>(shared_.slot(r))[i];
    shared_.wait();
    return all;
  }

 private:
  static std::int64_t pieces_of(const at::Tensor& flat) {
    return RankMemory::kSlotBytes / static_cast<std::int64_t>(flat.element_size());
  }
  at::Tensor slot(int rank, const at::Tensor& like) {
    return at::from_blob(shared_.slot(rank), like.sizes(), like.options());
  }
  RankMemory& shared_;
};

}  // namespace

std::unique_ptr<Collective> collective_by_memory(RankMemory& memory, int rank, int size) {
  return std::make_unique<ByMemory>(memory, rank, size);
}

}  // namespace warpsmith::model
