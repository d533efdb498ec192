// Memory that the ranks of a machine share.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "warpsmith/model/collective.h"

namespace warpsmith::model {

struct RankMemory {
  static constexpr std::int64_t kSlotBytes = 4 << 20;  // of a rank: what it shares at a time

  pthread_barrier_t barrier;
  std::atomic<bool> done{false};  // rank 0 has all that it wanted
  unsigned char nccl_id[128];
  alignas(64) unsigned char slots[1];  // kSlotBytes of each rank

  static std::size_t bytes(int size) {
    return sizeof(RankMemory) + static_cast<std::size_t>(size) * kSlotBytes;
  }
  void* slot(int rank) { return slots + static_cast<std::int64_t>(rank) * kSlotBytes; }
  void wait() { pthread_barrier_wait(&barrier); }
};

// For tensors on the CPU. `memory` must outlive it.
std::unique_ptr<Collective> collective_by_memory(RankMemory& memory, int rank, int size);

}  // namespace warpsmith::model
