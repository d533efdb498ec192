// Causal attention over packed segments by cuDNN: on Hopper and newer it takes two thirds of FlashAttention
// 2's time. Its backward pass adds up in an order that changes from run to run. Graphs are NVIDIA's
// (cudnn_frontend); a plan is made once for each size, sizes rounded up to powers of two.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "warpsmith/model/fused.h"

namespace warpsmith::model {

class PackedAttention {
 public:
  PackedAttention();
  ~PackedAttention();
  // As Fused has them.
  bool serves(std::int64_t heads, std::int64_t kv_heads, std::int64_t size) const;
  bool forward(const TurnedHeads& heads, const Ragged& ragged, double scale, const at::Tensor& out,
               const at::Tensor& sums);
  void backward(const TurnedHeads& heads, const Ragged& ragged, double scale, const at::Tensor& out,
                const at::Tensor& sums, const at::Tensor& dout, const TurnedHeads& gradients);

 private:
  struct Plan;
  struct Key;
  template <typename Make>
  Plan* plan(const Key& key, const Make& make);

  std::mutex mutex_;  // the backward pass has a thread of its own
  std::map<Key, std::unique_ptr<Plan>> plans_;
  bool usable_ = false;
};

}  // namespace warpsmith::model
