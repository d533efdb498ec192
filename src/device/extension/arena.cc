#include "arena.h"

#include <algorithm>

namespace warpsmith::device {

namespace {

constexpr std::uint64_t kGrain = 512;
constexpr std::uint64_t kSmall = 1 << 20;
constexpr std::uint64_t kChunk = 8 << 20;

}  // namespace

void* Arena::allocate(std::uint64_t bytes) {
  if (bytes > limit_) return nullptr;
  bytes = std::max<std::uint64_t>((bytes + kGrain - 1) / kGrain * kGrain, kGrain);
  const std::lock_guard lock(mutex_);
  // A block of up to twice the size will do.
  if (const auto found = free_.lower_bound(bytes); found != free_.end() && found->first <= 2 * bytes) {
    void* const memory = found->second;
    free_.erase(found);
    return memory;
  }
  void* const memory = carve(bytes);
  if (memory != nullptr) sizes_[memory] = bytes;
  return memory;
}

void* Arena::carve(std::uint64_t bytes) {
  if (bytes >= kSmall) {
    void* memory = nullptr;
    if (used_ + bytes > limit_ || gpu_.allocate(bytes, &memory) != 0) return nullptr;
    used_ += bytes;
    return memory;
  }
  if (chunk_left_ < bytes) {
    void* memory = nullptr;
    if (gpu_.allocate(kChunk, &memory) != 0) return nullptr;
    chunk_ = static_cast<char*>(memory);
    chunk_left_ = kChunk;
    used_ += kChunk;
    if (used_ > limit_ + kChunk) return nullptr;
  }
  void* const memory = chunk_;
  chunk_ += bytes;
  chunk_left_ -= bytes;
  return memory;
}

void Arena::release(void* memory) {
  const std::lock_guard lock(mutex_);
  if (const auto found = sizes_.find(memory); found != sizes_.end()) free_.emplace(found->second, memory);
}

}  // namespace warpsmith::device
