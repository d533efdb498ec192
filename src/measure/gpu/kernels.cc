#include "kernels.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "answers/value_elements.h"

namespace warpsmith::measure {

namespace {

constexpr std::uint64_t kAlignment = 256;  // of pools
constexpr unsigned kThreads = 256;
constexpr std::uint64_t kLongestHold = 50'000'000;  // ns

std::uint64_t round_up(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// As in kernels.cu.
struct Regions {
  std::uint64_t count = 0;
  GpuRegion regions[24];
};

unsigned blocks_for(std::uint64_t elements, int sms) {
  const std::uint64_t wanted = (elements + kThreads - 1) / kThreads;
  return static_cast<unsigned>(std::clamp<std::uint64_t>(wanted, 1, static_cast<std::uint64_t>(sms) * 8));
}

}  // namespace

GpuKernels::GpuKernels(const device::Gpu& gpu, std::span<const std::byte> cubin, const ValueSource& source)
    : gpu_(gpu),
      source_(source),
      module_(cubin),
      hold_(module_.kernel("ws_hold")),
      values_(module_.kernel("ws_values")),
      canaries_(module_.kernel("ws_canaries")),
      outputs_(module_.kernel("ws_outputs")),
      differs_(module_.kernel("ws_differs")),
      scrub_(module_.kernel("ws_scrub")),
      touch_(module_.kernel("ws_touch")),
      poison_(module_.kernel("ws_poison")),
      read_(module_.kernel("ws_read")),
      copy_(module_.kernel("ws_copy")),
      nothing_(module_.kernel("ws_nothing")),
      pattern_(module_.kernel("ws_pattern")),
      fma32_(module_.kernel("ws_fma32")),
      fma64_(module_.kernel("ws_fma64")),
      reread_(module_.kernel("ws_reread")),
      scratch_(std::max<std::uint64_t>(2 * gpu.facts().l2_bytes, 8 << 20)),
      flag_(sizeof(int)),
      released_(sizeof(std::uint32_t)) {
  *released_.as<volatile std::uint32_t>() = 0;
  const ValueSource::PoolView view = source.pools();
  const std::span<const std::byte> pools[4] = {
      std::as_bytes(view.first_normal), std::as_bytes(view.second_normal), std::as_bytes(view.first_bits),
      std::as_bytes(view.second_bits)};
  std::uint64_t bytes = 0;
  for (int i = 0; i < 4; ++i) {
    pool_offsets_[i] = bytes;
    bytes += round_up(pools[i].size());
  }
  pools_ = device::GpuMemory(bytes);
  pinned_pools_ = device::PinnedMemory(bytes);
  std::memset(pinned_pools_.data(), 0, bytes);
  for (int i = 0; i < 4; ++i)
    std::memcpy(pinned_pools_.data() + pool_offsets_[i], pools[i].data(), pools[i].size());
  device::upload(pools_.address(), pinned_pools_.data(), bytes);
  scrub_.allow_shared_memory(gpu.facts().smem_max);
  gpu.settle(10);
}

void GpuKernels::fill_by_host(const GpuFill& fill, const task::Dims& dims) const {
  // The copy before this one from the same place may be under way, and a candidate's untimed call before it.
  gpu_.settle(60);
  if (staging_.bytes() < fill.to.bytes) staging_ = device::PinnedMemory(std::bit_ceil(fill.to.bytes));
  source_.fill(*fill.values, fill.dtype, *fill.shape, dims, fill.key,
               {staging_.data(), static_cast<std::size_t>(fill.to.bytes)});
  device::upload(fill.to.address, staging_.data(), fill.to.bytes);
}

void GpuKernels::fill_drawn_by_host(std::vector<GpuFill>& fills, const task::Dims& dims) const {
  std::erase_if(fills, [&](const GpuFill& fill) {
    if (!ValueSource::drawn_by_host(*fill.values, dims)) return false;
    if (fill.to.bytes > 0) fill_by_host(fill, dims);
    return true;
  });
}

void GpuKernels::fill(std::span<const GpuFill> fills, const task::Dims& dims) const {
  GpuDraws list;
  unsigned count = 0;
  std::uint64_t largest = 0;
  void* arguments[] = {&list};
  const auto go = [&] {
    if (count > 0)
      values_.launch(
          {blocks_for((largest + kElementsAThread - 1) / kElementsAThread, gpu_.facts().sms), count},
          kThreads, arguments);
    count = 0;
    largest = 0;
  };
  for (const GpuFill& fill : fills) {
    if (fill.to.bytes == 0) continue;
    const ValueDraw draw = ValueSource::draw(*fill.values, dims, fill.key);
    if (draw.kind == ValueDraw::Kind::kHost) {
      fill_by_host(fill, dims);
      continue;
    }
    const bool normal = draw.kind == ValueDraw::Kind::kNormal;
    const std::uint64_t elements = fill.to.bytes / task::size_of(fill.dtype);
    list.draws[count++] = {.key = draw.key,
                           .pool_a = pool(normal ? 0 : 2),
                           .pool_b = pool(normal ? 1 : 3),
                           .out = fill.to.address,
                           .count = elements,
                           .low = draw.low,
                           .range = draw.range,
                           .base = draw.base,
                           .x_scale = draw.x_scale,
                           .y_scale = draw.y_scale,
                           .kind = static_cast<unsigned>(draw.kind),
                           .dtype = static_cast<unsigned>(fill.dtype)};
    largest = std::max(largest, elements);
    if (count == std::size(list.draws)) go();
  }
  go();
}

// A row of blocks a region, as many regions at once as a kernel's arguments hold.
void GpuKernels::poison(std::span<const GpuRegion> memory) const {
  Regions list;
  std::uint64_t largest = 0;
  void* arguments[] = {&list};
  const auto go = [&] {
    if (list.count > 0)
      poison_.launch({blocks_for(largest / 16, gpu_.facts().sms), static_cast<unsigned>(list.count)},
                     kThreads, arguments);
    list.count = 0;
    largest = 0;
  };
  for (const GpuRegion& region : memory) {
    if (region.bytes == 0) continue;
    list.regions[list.count++] = region;
    largest = std::max(largest, region.bytes);
    if (list.count == std::size(list.regions)) go();
  }
  go();
}

void GpuKernels::look_at_canaries(device::GpuAddress regions, unsigned count, int* flag,
                                  unsigned threads) const {
  unsigned char pattern = kCanary;
  void* arguments[] = {&regions, &pattern, &flag};
  canaries_.launch(count, threads, arguments);
}

void GpuKernels::look_for_poison(device::GpuAddress regions, unsigned count, int size, std::uint64_t key,
                                 bool poisoned, int* flag) const {
  int wanted = poisoned ? 1 : 0;
  void* arguments[] = {&regions, &size, &key, &wanted, &flag};
  outputs_.launch(count, 32, arguments);
}

void GpuKernels::compare(device::GpuAddress a, device::GpuAddress b, std::uint64_t bytes, int number,
                         int* flag) const {
  if (bytes == 0) return;
  void* arguments[] = {&a, &b, &bytes, &number, &flag};
  differs_.launch(blocks_for(bytes / 16, gpu_.facts().sms), kThreads, arguments);
}

void GpuKernels::flush_l2() const { device::fill_bytes(scratch_.address(), ++flushes_, scratch_.bytes()); }

void GpuKernels::hold() const {
  volatile std::uint32_t* released = released_.as<volatile std::uint32_t>();
  std::uint32_t number = ++holds_;
  std::uint64_t most = kLongestHold;
  void* arguments[] = {&released, &number, &most};
  hold_.launch(1, 1, arguments);
}

void GpuKernels::release() const { *released_.as<volatile std::uint32_t>() = holds_; }

void GpuKernels::touch(std::span<const GpuRegion> memory) const {
  Regions list;
  device::GpuAddress sink = scratch_.address();
  void* arguments[] = {&list, &sink};
  const auto go = [&] {
    if (list.count > 0) touch_.launch(static_cast<unsigned>(gpu_.facts().sms), 32, arguments);
    list.count = 0;
  };
  for (const GpuRegion& region : memory) {
    if (region.bytes < 4) continue;
    list.regions[list.count++] = region;
    if (list.count == std::size(list.regions)) go();
  }
  go();
}

void GpuKernels::scrub_shared_memory() const {
  std::uint32_t words = static_cast<std::uint32_t>(gpu_.facts().smem_max / 4);
  void* arguments[] = {&words};
  scrub_.launch(static_cast<unsigned>(gpu_.facts().sms), 1024, arguments, words * 4);
}

void GpuKernels::read_memory(device::GpuAddress from, std::uint64_t bytes, unsigned blocks_an_sm) const {
  std::uint64_t count = bytes / 16;
  device::GpuAddress sink = scratch_.address();
  void* arguments[] = {&from, &count, &sink};
  read_.launch(static_cast<unsigned>(gpu_.facts().sms) * blocks_an_sm, kThreads, arguments);
}

void GpuKernels::copy_memory(device::GpuAddress to, device::GpuAddress from, std::uint64_t bytes,
                             unsigned blocks_an_sm) const {
  std::uint64_t count = bytes / 16;
  void* arguments[] = {&to, &from, &count};
  copy_.launch(static_cast<unsigned>(gpu_.facts().sms) * blocks_an_sm, kThreads, arguments);
}

void GpuKernels::launch_nothing() const { nothing_.launch(1, 32, nullptr); }

void GpuKernels::make_pattern(FingerprintPattern pattern, device::GpuAddress out) const {
  auto number = static_cast<std::uint32_t>(pattern);
  void* arguments[] = {&number, &out};
  pattern_.launch(static_cast<unsigned>(kPatternWords / 4 / 32), 32, arguments);
}

void GpuKernels::multiply_add(bool float64, std::uint32_t steps, device::GpuAddress out) const {
  void* arguments[] = {&steps, &out};
  (float64 ? fma64_ : fma32_)
      .launch(static_cast<unsigned>(gpu_.facts().sms) * kMultiplyAddBlocksAnSm, kThreads, arguments);
}

void GpuKernels::read_again(device::GpuAddress from, std::uint64_t bytes, std::uint32_t passes) const {
  std::uint64_t count = bytes / 16;
  device::GpuAddress sink = scratch_.address();
  void* arguments[] = {&from, &count, &passes, &sink};
  reread_.launch(static_cast<unsigned>(gpu_.facts().sms) * 8, kThreads, arguments);
}

bool GpuKernels::pools_are_whole() const {
  *flag_.as<int>() = 0;
  compare(pools_.address(), reinterpret_cast<device::GpuAddress>(pinned_pools_.data()), pools_.bytes(), 0,
          flag_.as<int>());
  gpu_.settle(10);
  return *flag_.as<int>() == 0 && *released_.as<volatile std::uint32_t>() == holds_;
}

}  // namespace warpsmith::measure
