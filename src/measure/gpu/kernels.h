// The kernels of the harness (kernels.cu): values, poison, canaries, comparisons, caches, and the hold that
// keeps a stream busy.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "warpsmith/device/gpu.h"
#include "warpsmith/measure/values.h"
#include "warpsmith/task/task.h"

namespace warpsmith::measure {

// As in kernels.cu.
struct GpuRegion {
  device::GpuAddress address = 0;
  std::uint64_t bytes = 0;
};

// What the memory around operands is filled with.
inline constexpr std::uint8_t kCanary = 0xC5;

// One input of one call: its values as they are drawn.
struct GpuFill {
  const task::ValueSpec* values = nullptr;
  task::Dtype dtype = task::Dtype::kFloat32;
  const std::vector<std::int64_t>* shape = nullptr;
  std::uint64_t key = 0;
  GpuRegion to;
};

// Of fingerprint.cu, in its numbers. Products take tensor cores of capability 8.0 or later, kTanh 7.5.
enum class FingerprintPattern : std::uint32_t {
  kBfloat16Product,
  kFloat16Product,
  kTf32Product,
  kExp2,
  kSine,
  kLog2,
  kInverseRoot,
  kInverse,
  kTanh,
  kWarpSum,
};
inline constexpr std::uint64_t kPatternWords = 16384;

class GpuKernels {
 public:
  // `cubin`: of kernels.cu for this GPU.
  GpuKernels(const device::Gpu& gpu, std::span<const std::byte> cubin, const ValueSource& source);

  // All enqueued.
  void fill(std::span<const GpuFill> fills, const task::Dims& dims) const;
  // Those that only the host can draw; takes them out of the list. Waits.
  void fill_drawn_by_host(std::vector<GpuFill>& fills, const task::Dims& dims) const;
  // All bytes become 0xFF. Regions lie at 16 bytes.
  void poison(std::span<const GpuRegion> memory) const;
  // `threads`: for each region, one a byte at a time.
  void look_at_canaries(device::GpuAddress regions, unsigned count, int* flag, unsigned threads = 64) const;
  // Of `count` outputs, elements of `size` bytes each, at a few places: `flag` becomes the least number + 1
  // of one that is poisoned there (unwritten), or is not (written).
  void look_for_poison(device::GpuAddress regions, unsigned count, int size, std::uint64_t key, bool poisoned,
                       int* flag) const;
  void compare(device::GpuAddress a, device::GpuAddress b, std::uint64_t bytes, int number, int* flag) const;
  void flush_l2() const;
  // Brings the address translations of these stretches of memory to where a call finds them, and (but for a
  // word in each 64 KiB) none of their data. Which pages the flush has driven out of the TLB depends on their
  // addresses: 4.0 us or 5.5 us for the same call.
  void touch(std::span<const GpuRegion> memory) const;
  // Overwrites the shared memory of all SMs.
  void scrub_shared_memory() const;
  // For the probe: reads, or copies, `bytes` (a multiple of 16), and launches a kernel that does nothing.
  void read_memory(device::GpuAddress from, std::uint64_t bytes, unsigned blocks_an_sm) const;
  void copy_memory(device::GpuAddress to, device::GpuAddress from, std::uint64_t bytes,
                   unsigned blocks_an_sm) const;
  void launch_nothing() const;
  // For the fingerprint: kPatternWords words; fused multiply-adds, 8 * steps a thread, with cycles and
  // nanoseconds of a block as the two first of three 64-bit words at `out`; reading memory `passes` times.
  static constexpr unsigned kMultiplyAddBlocksAnSm = 4;
  void make_pattern(FingerprintPattern pattern, device::GpuAddress out) const;
  void multiply_add(bool float64, std::uint32_t steps, device::GpuAddress out) const;
  void read_again(device::GpuAddress from, std::uint64_t bytes, std::uint32_t passes) const;
  // Whether the pools that values are made of are as they were, and the word that ends a hold. Waits.
  bool pools_are_whole() const;

  // Keeps the stream busy until release(), for at most 50 ms.
  void hold() const;
  void release() const;

 private:
  void fill_by_host(const GpuFill& fill, const task::Dims& dims) const;
  device::GpuAddress pool(int number) const { return pools_.address() + pool_offsets_[number]; }

  const device::Gpu& gpu_;
  const ValueSource& source_;
  device::GpuModule module_;
  device::GpuKernel hold_, values_, canaries_, outputs_, differs_, scrub_, touch_, poison_, read_, copy_,
      nothing_, pattern_, fma32_, fma64_, reread_;
  device::GpuMemory pools_, scratch_;
  std::uint64_t pool_offsets_[4] = {};
  mutable std::uint8_t flushes_ = 0;
  device::PinnedMemory flag_, released_, pinned_pools_;
  mutable std::uint32_t holds_ = 0;
  mutable device::PinnedMemory staging_;  // of values that the host makes
};

}  // namespace warpsmith::measure
