// The process's allocator, for programs that free and take megabytes again and again.
#pragma once

#include <cstddef>

namespace warpsmith {

// Freed memory stays with the process and is handed out again as it is, mapped. Otherwise every large tensor
// lies in fresh pages, and its page faults are paid (and timed) at each use. To be called before the first
// large allocation; without effect where the C library is not glibc. `ready_bytes` are taken and touched now,
// so that not even a first use pays for pages.
void keep_freed_memory(std::size_t ready_bytes = 0);

}  // namespace warpsmith
