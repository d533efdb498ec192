#include "warpsmith/base/allocator.h"

#include <cstdlib>
#include <cstring>
#include <vector>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace warpsmith {

void keep_freed_memory([[maybe_unused]] std::size_t ready_bytes) {
#if defined(__GLIBC__)
  // The most that glibc takes. A larger value is refused, and as any call ends its own adjusting, blocks over
  // 128 KiB would then be mapped anew each time.
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 2147483647);
  ::mallopt(M_TOP_PAD, 64 << 20);
  constexpr std::size_t kBlock = 16 << 20;  // from the heap, not mapped
  std::vector<void*> blocks;
  for (std::size_t taken = 0; taken < ready_bytes; taken += kBlock)
    if (void* const block = std::malloc(kBlock); block != nullptr)
      blocks.push_back(std::memset(block, 1, kBlock));
  asm volatile("" : : "r"(blocks.data()) : "memory");  // a compiler may drop what is freed unread
  for (void* const block : blocks) std::free(block);
#endif
}

}  // namespace warpsmith
