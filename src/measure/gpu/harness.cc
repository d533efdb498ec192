#include "harness.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "warpsmith/base/error.h"

namespace warpsmith::measure {

namespace {

constexpr std::uint64_t kAlignment = 256;  // of operands
constexpr std::uint64_t kCanaryBytes = 256;
constexpr std::uint8_t kCanary = 0xC5;
constexpr unsigned kThreads = 256;
constexpr double kLongestHold = 50e6;  // ns
constexpr double kLargestMargin = 10;

std::uint64_t round_up(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// As in kernels.cu.
struct Draw {
  std::uint32_t kind, first, second, shift;
  float base, x_scale, y_scale;
  std::uint32_t dtype;
  std::int64_t low;
  std::uint64_t range, pool_a, pool_b;
  std::uint32_t size_a, size_b;
};
struct Region {
  std::uint64_t address, bytes;
};

unsigned blocks_for(std::uint64_t elements, int sms) {
  const std::uint64_t wanted = (elements + kThreads - 1) / kThreads;
  return static_cast<unsigned>(std::clamp<std::uint64_t>(wanted, 1, static_cast<std::uint64_t>(sms) * 8));
}

int* as_flag(const device::PinnedMemory& memory) { return reinterpret_cast<int*>(memory.data()); }

}  // namespace

GpuOperands::GpuOperands(const GpuHarness& harness, std::vector<GpuOperandSpec> specs, int sets)
    : harness_(harness), specs_(std::move(specs)), sets_(sets), flag_(sizeof(int)) {
  for (const GpuOperandSpec& spec : specs_) {
    offsets_.push_back(set_bytes_);
    set_bytes_ += round_up(spec.bytes) + kCanaryBytes;
  }
  memory_ = device::GpuMemory(kCanaryBytes + set_bytes_ * static_cast<std::uint64_t>(sets));
  device::fill_bytes(memory_.address(), kCanary, memory_.bytes());
  std::vector<Region> regions = {{memory_.address(), kCanaryBytes}};
  for (int set = 0; set < sets; ++set)
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      const std::uint64_t begin = address(set, i) + specs_[i].bytes;
      regions.push_back({begin, address(set, i) + round_up(specs_[i].bytes) + kCanaryBytes - begin});
    }
  region_count_ = static_cast<unsigned>(regions.size());
  regions_ = device::GpuMemory(regions.size() * sizeof(Region));
  device::upload(regions_.address(), regions.data(), regions_.bytes());
  if (const device::GpuOutcome done = harness.gpu().wait(10); !done.ok()) throw Error("on the GPU: " + done.detail);
  *as_flag(flag_) = 0;
}

device::GpuAddress GpuOperands::address(int set, std::size_t index) const {
  return memory_.address() + kCanaryBytes + set_bytes_ * static_cast<std::uint64_t>(set) + offsets_.at(index);
}

void GpuOperands::look_at_canaries() {
  *as_flag(flag_) = 0;
  harness_.look_at_canaries(regions_.address(), region_count_, as_flag(flag_));
}

std::optional<std::string> GpuOperands::problem() const {
  const int region = *as_flag(flag_) - 1;
  if (region < 0) return std::nullopt;
  if (region == 0) return "writes before `" + (specs_.empty() ? std::string() : specs_.front().name) + "`";
  return "writes behind `" + specs_[static_cast<std::size_t>(region - 1) % specs_.size()].name + "`";
}

GpuHarness::GpuHarness(const device::Gpu& gpu, std::span<const std::byte> cubin, const ValueSource& source)
    : gpu_(gpu),
      source_(source),
      module_(cubin),
      hold_(module_.kernel("ws_hold")),
      values_(module_.kernel("ws_values")),
      canaries_(module_.kernel("ws_canaries")),
      unwritten_(module_.kernel("ws_unwritten")),
      differs_(module_.kernel("ws_differs")),
      scrub_(module_.kernel("ws_scrub")),
      touch_(module_.kernel("ws_touch")),
      scratch_(std::max<std::uint64_t>(2 * gpu.facts().l2_bytes, 8 << 20)),
      flag_(sizeof(int)) {
  const ValueSource::PoolView view = source.pools();
  const std::span<const std::byte> pools[4] = {std::as_bytes(view.first_normal), std::as_bytes(view.second_normal),
                                               std::as_bytes(view.first_bits), std::as_bytes(view.second_bits)};
  std::uint64_t bytes = 0;
  for (int i = 0; i < 4; ++i) {
    pool_offsets_[i] = bytes;
    bytes += round_up(pools[i].size());
  }
  pools_ = device::GpuMemory(bytes);
  pinned_pools_ = device::PinnedMemory(bytes);
  std::memset(pinned_pools_.data(), 0, bytes);
  for (int i = 0; i < 4; ++i) std::memcpy(pinned_pools_.data() + pool_offsets_[i], pools[i].data(), pools[i].size());
  device::upload(pools_.address(), pinned_pools_.data(), bytes);
  scrub_.allow_shared_memory(gpu.facts().smem_max);
  if (const device::GpuOutcome done = gpu.wait(10); !done.ok()) throw Error("on the GPU: " + done.detail);
}

void GpuHarness::fill(const task::ValueSpec& values, task::Dtype dtype, const std::vector<std::int64_t>& shape,
                      const task::Dims& dims, std::uint64_t key, device::GpuAddress out, std::uint64_t bytes) const {
  if (bytes == 0) return;
  const ValueDraw draw = ValueSource::draw(values, dims, key);
  if (draw.kind == ValueDraw::Kind::kRows) {
    device::PinnedMemory& staging = staging_[bytes];
    if (staging.bytes() == 0) staging = device::PinnedMemory(bytes);
    // The copy before this one from the same place may be under way.
    if (const device::GpuOutcome done = gpu_.wait(10); !done.ok()) throw Error("on the GPU: " + done.detail);
    source_.fill(values, dtype, shape, dims, key, {staging.data(), bytes});
    device::upload(out, staging.data(), bytes);
    return;
  }
  const bool normal = draw.kind == ValueDraw::Kind::kNormal;
  const ValueSource::PoolView view = source_.pools();
  Draw d{static_cast<std::uint32_t>(draw.kind), draw.first, draw.second, draw.shift, draw.base, draw.x_scale, draw.y_scale,
         static_cast<std::uint32_t>(dtype), draw.low, draw.range, pool(normal ? 0 : 2), pool(normal ? 1 : 3),
         static_cast<std::uint32_t>(view.first_normal.size()), static_cast<std::uint32_t>(view.second_normal.size())};
  std::uint64_t count = bytes / task::size_of(dtype);
  void* arguments[] = {&d, &out, &count};
  values_.launch(blocks_for(count, gpu_.facts().sms), kThreads, arguments);
}

void GpuHarness::look_at_canaries(device::GpuAddress regions, unsigned count, int* flag) const {
  unsigned char pattern = kCanary;
  void* arguments[] = {&regions, &pattern, &flag};
  canaries_.launch(count, 64, arguments);
}

void GpuHarness::look_for_unwritten(device::GpuAddress regions, unsigned count, int size, std::uint64_t key,
                                    int* flag) const {
  void* arguments[] = {&regions, &size, &key, &flag};
  unwritten_.launch(count, 32, arguments);
}

void GpuHarness::compare(device::GpuAddress a, device::GpuAddress b, std::uint64_t bytes, int number, int* flag) const {
  if (bytes == 0) return;
  void* arguments[] = {&a, &b, &bytes, &number, &flag};
  differs_.launch(blocks_for(bytes / 16, gpu_.facts().sms), kThreads, arguments);
}

void GpuHarness::flush_l2() const { device::fill_bytes(scratch_.address(), ++flushes_, scratch_.bytes()); }

void GpuHarness::hold(double ns) const {
  std::uint64_t time = static_cast<std::uint64_t>(ns);
  void* arguments[] = {&time};
  hold_.launch(1, 1, arguments);
}

void GpuHarness::touch(std::span<const Stretch> memory) const {
  constexpr std::size_t kAtOnce = 24;  // as in kernels.cu
  struct {
    std::uint64_t count = 0;
    Region regions[kAtOnce];
  } list;
  device::GpuAddress sink = scratch_.address();
  void* arguments[] = {&list, &sink};
  const auto go = [&] {
    if (list.count > 0) touch_.launch(static_cast<unsigned>(gpu_.facts().sms), 32, arguments);
    list.count = 0;
  };
  for (const auto& [address, bytes] : memory) {
    if (bytes < 4) continue;
    list.regions[list.count++] = {address, bytes};
    if (list.count == kAtOnce) go();
  }
  go();
}

void GpuHarness::scrub_shared_memory() const {
  std::uint32_t words = static_cast<std::uint32_t>(gpu_.facts().smem_max / 4);
  void* arguments[] = {&words};
  scrub_.launch(static_cast<unsigned>(gpu_.facts().sms), 1024, arguments, words * 4);
}

bool GpuHarness::pools_are_whole() const {
  *as_flag(flag_) = 0;
  compare(pools_.address(), reinterpret_cast<device::GpuAddress>(pinned_pools_.data()), pools_.bytes(), 0, as_flag(flag_));
  if (!gpu_.wait(10).ok()) return false;
  return *as_flag(flag_) == 0;
}

GpuTimes GpuHarness::time_calls(Hold& hold_back, std::span<const Stretch> memory,
                                const std::function<device::GpuOutcome()>& calls, double timeout_s) {
  using Clock = std::chrono::steady_clock;
  flush_l2();
  touch(memory);
  hold(std::min(hold_back.ns(), kLongestHold));
  start_.record();
  const Clock::time_point begin = Clock::now();
  GpuTimes times;
  times.outcome = calls();
  const double host_ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  stop_.record();
  if (!times.outcome.ok()) return times;
  times.late = start_.passed();
  hold_back.enqueue_ns = hold_back.enqueue_ns == 0 || times.late ? std::max(hold_back.enqueue_ns, host_ns)
                                                                 : 0.8 * hold_back.enqueue_ns + 0.2 * host_ns;
  if (times.late) hold_back.margin = std::min(1.2 * hold_back.margin, kLargestMargin);
  times.outcome = gpu_.wait(timeout_s);
  if (times.outcome.ok()) times.queued_ns = device::GpuEvent::ns_between(start_, stop_);
  return times;
}

GpuTimes GpuHarness::time_idle(const std::function<device::GpuOutcome()>& call, double timeout_s) {
  flush_l2();
  GpuTimes times;
  times.outcome = gpu_.wait(timeout_s);
  if (!times.outcome.ok()) return times;
  start_.record();
  times.outcome = call();
  stop_.record();
  if (!times.outcome.ok()) return times;
  times.outcome = gpu_.wait(timeout_s);
  if (times.outcome.ok()) times.queued_ns = device::GpuEvent::ns_between(start_, stop_);
  return times;
}

}  // namespace warpsmith::measure
