#include "arena.h"

#include <algorithm>

namespace warpsmith::device {

namespace {

constexpr std::uint64_t kGrain = 512;
constexpr std::uint64_t kSmall = 1 << 20;
constexpr std::uint64_t kChunk = 8 << 20;

std::uint64_t grains(std::uint64_t bytes) {
  return std::max<std::uint64_t>((bytes + kGrain - 1) / kGrain * kGrain, kGrain);
}

}  // namespace

void* Arena::allocate(std::uint64_t bytes, const void* stream) {
  if (bytes > limit_) return nullptr;
  bytes = grains(bytes);
  const std::lock_guard lock(mutex_);
  // A block of up to twice the size will do.
  if (const auto found = free_.lower_bound({stream, bytes});
      found != free_.end() && found->first.stream == stream && found->first.bytes <= 2 * bytes) {
    void* const memory = found->second;
    free_.erase(found);
    return memory;
  }
  void* const memory = carve(bytes);
  if (memory != nullptr) blocks_[memory] = {stream, bytes};
  return memory;
}

void* Arena::allocate_for_ever(std::uint64_t bytes) {
  if (bytes > limit_) return nullptr;
  const std::lock_guard lock(mutex_);
  return carve(grains(bytes));
}

std::uint64_t Arena::room() const {
  const std::lock_guard lock(mutex_);
  return limit_ - std::min(limit_, used_);
}

void* Arena::carve(std::uint64_t bytes) {
  if (bytes >= kSmall) return whole(bytes);
  if (chunk_left_ < bytes) {
    void* const memory = whole(kChunk);
    if (memory == nullptr) return nullptr;
    chunk_ = static_cast<char*>(memory);
    chunk_left_ = kChunk;
  }
  void* const memory = chunk_;
  chunk_ += bytes;
  chunk_left_ -= bytes;
  return memory;
}

// Of the driver. A limit below a chunk still has one.
void* Arena::whole(std::uint64_t bytes) {
  const std::uint64_t limit = std::max(limit_, kChunk);
  void* memory = nullptr;
  for (int tries = 0; tries < 2; ++tries) {
    if (used_ + bytes <= limit && gpu_.allocate(bytes, &memory) == 0) {
      used_ += bytes;
      return memory;
    }
    if (!give_back_unused()) return nullptr;
  }
  return nullptr;
}

bool Arena::give_back_unused() {
  if (gpu_.synchronize() != 0) return false;  // it may be in use up to here
  bool any = false;
  for (auto it = free_.begin(); it != free_.end();) {
    if (it->first.bytes < kSmall) {
      ++it;
      continue;
    }
    if (gpu_.release(it->second) != 0) return any;
    used_ -= it->first.bytes;
    blocks_.erase(it->second);
    it = free_.erase(it);
    any = true;
  }
  return any;
}

void Arena::release(void* memory) {
  const std::lock_guard lock(mutex_);
  if (const auto found = blocks_.find(memory); found != blocks_.end()) free_.emplace(found->second, memory);
}

}  // namespace warpsmith::device
