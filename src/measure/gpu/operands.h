// Memory of the GPU for operands, with canaries and gaps between them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels.h"
#include "warpsmith/base/random.h"
#include "warpsmith/device/gpu.h"

namespace warpsmith::measure {

// Stretches of memory that were given back, for the next borrower: to get 2 GB from the driver takes
// milliseconds.
class GpuMemoryPool {
 public:
  explicit GpuMemoryPool(const device::Gpu& gpu) : gpu_(gpu) {}
  // What nobody has borrowed goes back to the GPU.
  void drop_spare() { spare_.clear(); }
  // At least as many bytes, those of an earlier borrower where they fit.
  device::GpuMemory borrow(std::uint64_t bytes);
  void give_back(device::GpuMemory memory);

 private:
  const device::Gpu& gpu_;
  std::multimap<std::uint64_t, device::GpuMemory> spare_;  // by size
};

// A list of regions on the device, for kernels of the harness. A candidate that knew where it lies could
// blind them by it: so it is compared with what was put there.
class RegionTable {
 public:
  RegionTable() = default;
  explicit RegionTable(std::vector<GpuRegion> regions);  // enqueued: the caller waits
  device::GpuAddress address(std::size_t first = 0) const {
    return memory_.address() + first * sizeof(GpuRegion);
  }
  unsigned count() const { return static_cast<unsigned>(regions_.size()); }
  bool is_whole(const device::Gpu& gpu) const;

 private:
  std::vector<GpuRegion> regions_;
  device::GpuMemory memory_;
};

// 0…count-1, each somewhere among those of its window: the first `window` of them, the next ….
std::vector<int> shuffled_in_windows(int count, int window, Random& random);

struct GpuOperandSpec {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t misalignment = 0;  // bytes past a 256-byte boundary
};

class GpuHarness;

// Operands of several calls in one stretch of memory, each with a canary of at least 256 bytes before and
// behind it, and with gaps of random width up to 64 KiB between them: which channels and slices of cache the
// sets meet is drawn anew for each. (At one distance from set to set, all of them met the same ones, and two
// equal programs came out up to 2 % apart.)
class GpuOperands {
 public:
  // Sets lie in windows of 64, in an order that nobody can foresee. `shared`: in memory that another process
  // may map.
  GpuOperands(const GpuHarness& harness, std::vector<GpuOperandSpec> specs, int sets, bool shared = false);
  ~GpuOperands();
  GpuOperands(const GpuOperands&) = delete;
  GpuOperands& operator=(const GpuOperands&) = delete;
  int sets() const { return sets_; }
  const std::vector<GpuOperandSpec>& specs() const { return specs_; }
  device::GpuAddress address(int set, std::size_t index) const;
  const device::GpuMemory& memory() const { return memory_; }
  // Enqueues a look at every canary; problem() tells after a wait.
  void look_at_canaries();
  // Enqueues a look at all that lies between the operands of these sets, before the first and behind the
  // last.
  void look_between(int first_set, int sets);
  // "writes behind `out`": what was written to is no operand; or nothing.
  std::optional<std::string> problem() const;
  // Whether the lists of canaries and gaps on the device are as they were put there. Waits.
  bool tables_are_whole() const;

 private:
  const GpuHarness& harness_;
  std::vector<GpuOperandSpec> specs_;
  int sets_;
  std::vector<std::uint64_t> offsets_;  // [set][operand]
  device::GpuMemory memory_;
  RegionTable table_;  // canaries
  RegionTable gaps_;   // [set]: what lies before each operand, whole, and behind the last
  device::PinnedMemory flag_, gap_flag_;
};

}  // namespace warpsmith::measure
