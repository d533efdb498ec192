// What measuring on a GPU needs of it, apart from any candidate: values, poison, canaries, a busy stream, and
// the clock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "warpsmith/base/random.h"
#include "warpsmith/device/gpu.h"
#include "warpsmith/measure/program.h"
#include "warpsmith/measure/values.h"
#include "warpsmith/task/task.h"

namespace warpsmith::measure {

// As in kernels.cu.
struct GpuRegion {
  device::GpuAddress address = 0;
  std::uint64_t bytes = 0;
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

// One input of one call: its values as they are drawn.
struct GpuFill {
  const task::ValueSpec* values = nullptr;
  task::Dtype dtype = task::Dtype::kFloat32;
  const std::vector<std::int64_t>* shape = nullptr;
  std::uint64_t key = 0;
  GpuRegion to;
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

struct GpuTimes {
  device::GpuOutcome outcome;
  double queued_ns = 0;   // all calls together
  bool late = false;      // the stream was not held back for as long as enqueueing took
  double enqueue_ns = 0;  // what it took the host to enqueue the calls
  double host_ns = 0;     // of time_idle(): the same by the host's clock, a wake-up included
};

class GpuHarness {
 public:
  // `cubin`: of kernels.cu for this GPU.
  GpuHarness(const device::Gpu& gpu, std::span<const std::byte> cubin, const ValueSource& source);
  const device::Gpu& gpu() const { return gpu_; }
  const ValueSource& source() const { return source_; }
  // At least as many bytes of the GPU, those of an earlier borrower where they fit: to get 2 GB from the
  // driver takes milliseconds.
  device::GpuMemory borrow(std::uint64_t bytes) const;
  void give_back(device::GpuMemory memory) const;

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
  // Whether the pools that values are made of are as they were, and the word that ends a hold. Waits.
  bool pools_are_whole() const;

  // Times what `calls` enqueues, between two events, behind a flush of L2, on a stream that is held back
  // until all is enqueued, for at most 50 ms. The calls follow one another without a flush between them: each
  // has operands of its own, which the one flush has driven out. (With a flush and two events for each call,
  // a call of 5 us took 4 to 6 us by its place in the row: the GPU's front end fetches what the host enqueues
  // meanwhile.) `memory`: what the calls will touch. Waits at most `timeout_s`.
  GpuTimes time_calls(std::span<const GpuRegion> memory, const std::function<device::GpuOutcome()>& calls,
                      double timeout_s);
  // The same with L2 and TLB as they are.
  GpuTimes time_queued(const std::function<device::GpuOutcome()>& calls, double timeout_s);
  // One call from an idle GPU, launch latency included.
  GpuTimes time_idle(const std::function<device::GpuOutcome()>& call, double timeout_s);
  // What the GPU takes, by the same clock, for `work`, which only enqueues, and not as calls: nanoseconds.
  // Throws GpuError. Waits without sleeping.
  double time_at_once(const std::function<void()>& work, double timeout_s);
  // Nanoseconds of all calls so far that a clock saw: between its events, or by add_timed().
  double timed_ns() const { return timed_ns_; }
  void add_timed(double ns) { timed_ns_ += ns; }

 private:
  void hold() const;  // until release()
  void release() const;
  // Reads the clock, once all is done that was enqueued between its events.
  void read_clock(GpuTimes& times, double timeout_s);
  void fill_by_host(const GpuFill& fill, const task::Dims& dims) const;
  device::GpuAddress pool(int number) const { return pools_.address() + pool_offsets_[number]; }

  const device::Gpu& gpu_;
  const ValueSource& source_;
  device::GpuModule module_;
  device::GpuKernel hold_, values_, canaries_, outputs_, differs_, scrub_, touch_, poison_, read_, copy_,
      nothing_;
  device::GpuMemory pools_, scratch_;
  std::uint64_t pool_offsets_[4] = {};
  mutable std::uint8_t flushes_ = 0;
  mutable std::multimap<std::uint64_t, device::GpuMemory> spare_memory_;  // by size
  device::PinnedMemory flag_, released_, pinned_pools_;
  mutable std::uint32_t holds_ = 0;
  mutable device::PinnedMemory staging_;  // of values that the host makes
  device::GpuEvent start_, stop_;
  double timed_ns_ = 0;
};

}  // namespace warpsmith::measure
