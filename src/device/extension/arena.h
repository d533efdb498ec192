// Memory on the device for tensors that a candidate makes: kept and handed out again, as torch's caching
// allocator does, so that a call after the first asks the driver for nothing. Where there is no room what is
// kept unused goes back to the driver first.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>

#include "warpsmith/device/extension_child.h"

namespace warpsmith::device {

class Arena {
 public:
  Arena(ExtensionGpu& gpu, std::uint64_t limit_bytes) : gpu_(gpu), limit_(limit_bytes) {}
  // Null where the limit or the device has no room. `stream`: where it is to be used.
  void* allocate(std::uint64_t bytes, const void* stream = nullptr);
  // The same for work that a CUDA graph repeats: it is never handed out again.
  void* allocate_for_ever(std::uint64_t bytes);
  // What the limit leaves; of the device's memory there may be less.
  std::uint64_t room() const;
  // What did not come from here is passed over. Work enqueued before goes on with it: the next one to get it
  // uses it on the same stream, which keeps the order.
  void release(void* memory);

 private:
  void* carve(std::uint64_t bytes);
  void* whole(std::uint64_t bytes);
  bool give_back_unused();

  ExtensionGpu& gpu_;
  std::uint64_t limit_, used_ = 0;
  struct Block {
    const void* stream;
    std::uint64_t bytes;
    auto operator<=>(const Block&) const = default;
  };
  std::multimap<Block, void*> free_;
  std::unordered_map<void*, Block> blocks_;  // all, handed out or not
  char* chunk_ = nullptr;                    // what small ones are carved from
  std::uint64_t chunk_left_ = 0;
  mutable std::mutex mutex_;  // a candidate may have threads
};

}  // namespace warpsmith::device
