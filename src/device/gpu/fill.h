// Fills memory of the GPU with one element, of whatever size. `Calls` has the driver's functions as members,
// by the names that cuda.h gives them: a Driver, or what else holds the five that are used here.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace warpsmith::device {

// CUDA names no largest height of a fill of rows; this is below every limit that it has on the second side
// of anything. On an H100 twice as many take 20 us longer from 32768 elements on, a quarter as many no less.
inline constexpr std::uint64_t kMostRowsOfAFill = 16384;

// Of 8 bytes, whose halves differ: CUDA fills with 4 at most. Each half is a column, one word wide, in rows
// of 8 bytes; what is longer is copied from the part before it, which doubles it every time.
template <typename Calls>
CUresult fill_words_in_turn(const Calls& d, CUdeviceptr to, std::uint32_t low, std::uint32_t high,
                            std::uint64_t count) {
  constexpr std::uint64_t kRow = 8;
  const std::uint64_t rows = std::min(count, kMostRowsOfAFill);
  CUresult result = d.cuMemsetD2D32Async(to, kRow, low, 1, rows, nullptr);
  if (result == CUDA_SUCCESS) result = d.cuMemsetD2D32Async(to + kRow / 2, kRow, high, 1, rows, nullptr);
  for (std::uint64_t done = rows; done < count && result == CUDA_SUCCESS;) {
    const std::uint64_t next = std::min(done, count - done);
    result = d.cuMemcpyDtoDAsync(to + done * kRow, to, next * kRow, nullptr);
    done += next;
  }
  return result;
}

// Enqueues: `bytes` from `to` on become elements of `element` bytes (1, 2, 4 or 8), each the lowest ones of
// `pattern`. It allocates nothing, and a graph may record it.
template <typename Calls>
CUresult fill_elements(const Calls& d, CUdeviceptr to, std::uint64_t bytes, std::uint64_t pattern,
                       std::size_t element) {
  if (bytes == 0) return CUDA_SUCCESS;
  switch (element) {
    case 1:
      return d.cuMemsetD8Async(to, static_cast<unsigned char>(pattern), bytes, nullptr);
    case 2:
      return d.cuMemsetD16Async(to, static_cast<unsigned short>(pattern), bytes / 2, nullptr);
    case 4:
      return d.cuMemsetD32Async(to, static_cast<unsigned>(pattern), bytes / 4, nullptr);
    default:
      break;
  }
  const auto low = static_cast<std::uint32_t>(pattern), high = static_cast<std::uint32_t>(pattern >> 32);
  if (low == high) return d.cuMemsetD32Async(to, low, bytes / 4, nullptr);
  return fill_words_in_turn(d, to, low, high, bytes / 8);
}

}  // namespace warpsmith::device
