// The processes that train one model together: how they start, find one another and end.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "warpsmith/model/collective.h"

namespace warpsmith::model {

struct RankMemory;

// The ranks of this job: this process, which becomes rank 0, and size - 1 children that go on behind the call
// as it does. Before anything that starts threads or touches a GPU. On GPUs (`gpus`) each rank sees one of
// those that this process saw. Where a rank ends before rank 0 has let go of the object, rank 0 says so and
// ends with its exit code; where rank 0 ends, all do. Throws Error.
class Ranks {
 public:
  Ranks(int size, bool gpus);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  int rank() const { return rank_; }
  int size() const { return size_; }
  // By NCCL for tensors on a GPU, else by memory that the ranks share. Null for one rank alone.
  std::unique_ptr<Collective> connect(const at::TensorOptions& placement) const;

 private:
  struct Watch;
  int rank_ = 0, size_;
  RankMemory* shared_ = nullptr;
  std::unique_ptr<Watch> watch_;
};

}  // namespace warpsmith::model
