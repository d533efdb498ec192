// Fills of elements, with a driver whose memory is the host's: no GPU is needed.
#include "fill.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include "driver.h"

namespace warpsmith::device {
namespace {

constexpr std::uint8_t kCanary = 0xC5;
constexpr std::size_t kAround = 64;

int calls = 0;
std::size_t most_rows = 0;

template <typename T>
CUresult set(CUdeviceptr to, T value, std::size_t count, CUstream) {
  ++calls;
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(reinterpret_cast<std::byte*>(to) + i * sizeof value, &value, sizeof value);
  return CUDA_SUCCESS;
}

CUresult set_rows(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width, std::size_t height,
                  CUstream stream) {
  // As the driver's own: words that lie on addresses of words, rows that do not overlap.
  if (to % sizeof value != 0 || pitch % sizeof value != 0 || width * sizeof value > pitch)
    return CUDA_ERROR_INVALID_VALUE;
  ++calls;
  most_rows = std::max(most_rows, height);
  for (std::size_t row = 0; row < height; ++row) set(to + row * pitch, value, width, stream);
  calls -= static_cast<int>(height);
  return CUDA_SUCCESS;
}

CUresult copy_bytes(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) {
  ++calls;
  EXPECT_TRUE(to + bytes <= from || from + bytes <= to) << "a copy onto itself";
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return CUDA_SUCCESS;
}

Driver host_driver() {
  Driver d;
  d.cuMemsetD8Async = set<unsigned char>;
  d.cuMemsetD16Async = set<unsigned short>;
  d.cuMemsetD32Async = set<unsigned>;
  d.cuMemsetD2D32Async = set_rows;
  d.cuMemcpyDtoDAsync = copy_bytes;
  return d;
}

// Every element is `value`, and nothing around them is written to.
template <typename T>
void expect_filled(T value, std::size_t count) {
  std::uint64_t pattern = 0;
  std::memcpy(&pattern, &value, sizeof value);
  std::vector<std::uint8_t> memory(kAround + count * sizeof value + kAround, kCanary), wanted = memory;
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(wanted.data() + kAround + i * sizeof value, &value, sizeof value);
  calls = 0;
  EXPECT_EQ(fill_elements(host_driver(), reinterpret_cast<CUdeviceptr>(memory.data() + kAround),
                          count * sizeof value, pattern, sizeof value),
            CUDA_SUCCESS);
  EXPECT_TRUE(memory == wanted) << count << " elements of " << sizeof value << " bytes";
}

TEST(GpuFill, OneCallWhereTheElementAllows) {
  for (const std::size_t count : {1, 2, 1000}) {
    expect_filled<std::uint8_t>(7, count);
    EXPECT_EQ(calls, 1);
    expect_filled<std::uint16_t>(0x3C00, count);
    EXPECT_EQ(calls, 1);
    expect_filled(1.5f, count);
    EXPECT_EQ(calls, 1);
    expect_filled(0.0, count);
    EXPECT_EQ(calls, 1);
    expect_filled<std::int64_t>(-1, count);
    EXPECT_EQ(calls, 1);
  }
}

TEST(GpuFill, EightBytesWhoseHalvesDiffer) {
  most_rows = 0;
  for (const std::size_t count : {1ul, 2ul, 7ul, 32767ul, 32768ul, 32769ul, 65536ul, 200001ul}) {
    expect_filled(1.0, count);
    expect_filled(0.1, count);
    expect_filled(-std::numeric_limits<double>::infinity(), count);
    expect_filled<std::int64_t>(1, count);
    expect_filled<std::int64_t>(-5, count);
    EXPECT_EQ(calls, 2 + static_cast<int>(std::bit_width((count - 1) / kMostRowsOfAFill))) << count;
  }
  EXPECT_LE(most_rows, kMostRowsOfAFill);
}

// As the child of tier `extension` has them: a few calls, and none that copies from the host.
TEST(GpuFill, OfWhateverCallsThereAre) {
  struct Calls {
    decltype(&::cuMemsetD8Async) cuMemsetD8Async = set<unsigned char>;
    decltype(&::cuMemsetD16Async) cuMemsetD16Async = set<unsigned short>;
    decltype(&::cuMemsetD32Async) cuMemsetD32Async = set<unsigned>;
    decltype(&::cuMemsetD2D32Async) cuMemsetD2D32Async = set_rows;
    decltype(&::cuMemcpyDtoDAsync) cuMemcpyDtoDAsync = copy_bytes;
  };
  std::vector<std::int64_t> memory(40000, 0);
  EXPECT_EQ(fill_elements(Calls(), reinterpret_cast<CUdeviceptr>(memory.data()),
                          memory.size() * sizeof(std::int64_t), 1, sizeof(std::int64_t)),
            CUDA_SUCCESS);
  EXPECT_EQ(memory, std::vector<std::int64_t>(40000, 1));
}

TEST(GpuFill, NothingToFillIsNoCall) {
  for (const std::size_t element : {1, 2, 4, 8}) {
    calls = 0;
    EXPECT_EQ(fill_elements(host_driver(), 0, 0, 1, element), CUDA_SUCCESS);
    EXPECT_EQ(calls, 0);
  }
}

TEST(GpuFill, TheDriversErrorIsPassedOn) {
  Driver d = host_driver();
  d.cuMemsetD2D32Async = [](CUdeviceptr, std::size_t, unsigned, std::size_t, std::size_t, CUstream) {
    return CUDA_ERROR_NOT_SUPPORTED;
  };
  calls = 0;
  EXPECT_EQ(fill_elements(d, 0, 8 * (kMostRowsOfAFill + 1), 1, 8), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace warpsmith::device
