#include "harness.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <iterator>
#include <numeric>
#include <random>

#include "answers/value_elements.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/random.h"

namespace warpsmith::measure {

namespace {

constexpr std::uint64_t kAlignment = 256;  // of operands
constexpr std::uint64_t kCanaryBytes = 256;
constexpr std::uint64_t kWidestGap = 256;  // canaries
constexpr int kWindow = 64;                // sets that lie among one another
constexpr std::uint8_t kCanary = 0xC5;
constexpr unsigned kThreads = 256, kGapThreads = 512;
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

std::vector<int> shuffled_in_windows(int count, int window, Random& random) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (int begin = 0; begin < count; begin += window)
    shuffle(std::span(order).subspan(static_cast<std::size_t>(begin),
                                     static_cast<std::size_t>(std::min(count - begin, window))),
            random);
  return order;
}

RegionTable::RegionTable(std::vector<GpuRegion> regions)
    : regions_(std::move(regions)), memory_(std::max<std::size_t>(1, regions_.size()) * sizeof(GpuRegion)) {
  device::upload(memory_.address(), regions_.data(), regions_.size() * sizeof(GpuRegion));
}

bool RegionTable::is_whole(const device::Gpu& gpu) const {
  constexpr double kPatience = 10;  // seconds
  std::vector<GpuRegion> now(regions_.size());
  device::download(now.data(), memory_.address(), now.size() * sizeof(GpuRegion));
  gpu.settle(kPatience);
  return std::equal(now.begin(), now.end(), regions_.begin(), [](const GpuRegion& a, const GpuRegion& b) {
    return a.address == b.address && a.bytes == b.bytes;
  });
}

GpuOperands::GpuOperands(const GpuHarness& harness, std::vector<GpuOperandSpec> specs, int sets, bool shared)
    : harness_(harness), specs_(std::move(specs)), sets_(sets), flag_(sizeof(int)), gap_flag_(sizeof(int)) {
  // Nobody who has this source can tell from one call's operands where the next one's lie.
  std::random_device system;
  Random random(random_key({system(), system()}));
  const std::vector<int> order = shuffled_in_windows(sets, kWindow, random);
  const std::size_t operands = specs_.size();
  offsets_.resize(static_cast<std::size_t>(sets) * operands);
  std::vector<std::uint64_t> ends;  // of operands, as they lie; begins with 0
  std::uint64_t end = 0;
  for (const int set : order)
    for (std::size_t i = 0; i < operands; ++i) {
      ends.push_back(end);
      const std::uint64_t begin =
          round_up(end) + kCanaryBytes * (2 + random.below(kWidestGap)) + specs_[i].misalignment;
      offsets_[static_cast<std::size_t>(set) * operands + i] = begin;
      end = begin + specs_[i].bytes;
    }
  const std::uint64_t all = round_up(end) + kCanaryBytes;
  memory_ = shared ? device::GpuMemory::shared(all) : harness.borrow(all);
  // All of it: an earlier borrower may have left answers behind `all`.
  device::fill_bytes(memory_.address(), kCanary, memory_.bytes());
  std::vector<GpuRegion> regions, gaps((operands + 1) * static_cast<std::size_t>(sets));
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    const std::uint64_t begin = memory_.address() + offsets_[i], behind = begin + specs_[i % operands].bytes;
    regions.push_back({begin - kCanaryBytes, kCanaryBytes});
    regions.push_back({behind, round_up(behind) + kCanaryBytes - behind});
  }
  for (std::size_t slot = 0; slot < order.size() && operands > 0; ++slot) {
    const auto set = static_cast<std::size_t>(order[slot]);
    GpuRegion* row = &gaps[set * (operands + 1)];
    for (std::size_t i = 0; i < operands; ++i) {
      const std::uint64_t before = ends[slot * operands + i];
      row[i] = {memory_.address() + before, offsets_[set * operands + i] - before};
    }
    const std::uint64_t behind = offsets_[set * operands + operands - 1] + specs_.back().bytes;
    const std::uint64_t next =
        slot + 1 < order.size() ? offsets_[static_cast<std::size_t>(order[slot + 1]) * operands] : all;
    row[operands] = {memory_.address() + behind, next - behind};
  }
  table_ = RegionTable(std::move(regions));
  gaps_ = RegionTable(std::move(gaps));
  harness.gpu().settle(10);
  *flag_.as<int>() = *gap_flag_.as<int>() = 0;
}

GpuOperands::~GpuOperands() {
  if (memory_.share() == nullptr) harness_.give_back(std::move(memory_));
}

device::GpuAddress GpuOperands::address(int set, std::size_t index) const {
  return memory_.address() + offsets_.at(static_cast<std::size_t>(set) * specs_.size() + index);
}

void GpuOperands::look_at_canaries() {
  *flag_.as<int>() = 0;
  if (table_.count() > 0) harness_.look_at_canaries(table_.address(), table_.count(), flag_.as<int>());
}

bool GpuOperands::tables_are_whole() const {
  return table_.is_whole(harness_.gpu()) && gaps_.is_whole(harness_.gpu());
}

void GpuOperands::look_between(int first_set, int sets) {
  *gap_flag_.as<int>() = 0;
  const std::size_t row = specs_.size() + 1;
  harness_.look_at_canaries(gaps_.address(static_cast<std::size_t>(first_set) * row),
                            static_cast<unsigned>(sets) * static_cast<unsigned>(row), gap_flag_.as<int>(),
                            kGapThreads);
}

std::optional<std::string> GpuOperands::problem() const {
  const int region = *flag_.as<int>() - 1;
  if (region < 0)
    return *gap_flag_.as<int>() == 0 ? std::nullopt : std::optional<std::string>("writes between operands");
  const std::string& name = specs_[static_cast<std::size_t>(region / 2) % specs_.size()].name;
  return (region % 2 == 0 ? "writes before `" : "writes behind `") + name + "`";
}

GpuHarness::GpuHarness(const device::Gpu& gpu, std::span<const std::byte> cubin, const ValueSource& source)
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

device::GpuMemory GpuHarness::borrow(std::uint64_t bytes) const {
  const std::uint64_t wanted = std::bit_ceil(std::max<std::uint64_t>(bytes, 2 << 20));
  if (const auto found = spare_memory_.find(wanted); found != spare_memory_.end()) {
    device::GpuMemory memory = std::move(found->second);
    spare_memory_.erase(found);
    return memory;
  }
  try {
    return device::GpuMemory(wanted);
  } catch (const device::GpuError& e) {
    if (e.outcome().verdict != Verdict::kOutOfMemory || e.outcome().context_lost) throw;
  }
  spare_memory_.clear();
  return device::GpuMemory(bytes);
}

// No more than an eighth of the GPU: torch, and what is shared, do not ask here.
void GpuHarness::give_back(device::GpuMemory memory) const {
  constexpr std::size_t kAtMost = 8;
  const std::uint64_t bytes = memory.bytes();
  std::uint64_t kept = bytes;
  for (const auto& spare : spare_memory_) kept += spare.first;
  if (device::gpu_is_lost() || spare_memory_.size() >= kAtMost || kept > gpu_.facts().memory_bytes / 8 ||
      !std::has_single_bit(bytes))
    return;
  spare_memory_.emplace(bytes, std::move(memory));
}

void GpuHarness::fill_by_host(const GpuFill& fill, const task::Dims& dims) const {
  // The copy before this one from the same place may be under way, and a candidate's untimed call before it.
  gpu_.settle(60);
  if (staging_.bytes() < fill.to.bytes) staging_ = device::PinnedMemory(std::bit_ceil(fill.to.bytes));
  source_.fill(*fill.values, fill.dtype, *fill.shape, dims, fill.key,
               {staging_.data(), static_cast<std::size_t>(fill.to.bytes)});
  device::upload(fill.to.address, staging_.data(), fill.to.bytes);
}

void GpuHarness::fill_drawn_by_host(std::vector<GpuFill>& fills, const task::Dims& dims) const {
  std::erase_if(fills, [&](const GpuFill& fill) {
    if (!ValueSource::drawn_by_host(*fill.values)) return false;
    if (fill.to.bytes > 0) fill_by_host(fill, dims);
    return true;
  });
}

void GpuHarness::fill(std::span<const GpuFill> fills, const task::Dims& dims) const {
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
void GpuHarness::poison(std::span<const GpuRegion> memory) const {
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

void GpuHarness::look_at_canaries(device::GpuAddress regions, unsigned count, int* flag,
                                  unsigned threads) const {
  unsigned char pattern = kCanary;
  void* arguments[] = {&regions, &pattern, &flag};
  canaries_.launch(count, threads, arguments);
}

void GpuHarness::look_for_poison(device::GpuAddress regions, unsigned count, int size, std::uint64_t key,
                                 bool poisoned, int* flag) const {
  int wanted = poisoned ? 1 : 0;
  void* arguments[] = {&regions, &size, &key, &wanted, &flag};
  outputs_.launch(count, 32, arguments);
}

void GpuHarness::compare(device::GpuAddress a, device::GpuAddress b, std::uint64_t bytes, int number,
                         int* flag) const {
  if (bytes == 0) return;
  void* arguments[] = {&a, &b, &bytes, &number, &flag};
  differs_.launch(blocks_for(bytes / 16, gpu_.facts().sms), kThreads, arguments);
}

void GpuHarness::flush_l2() const { device::fill_bytes(scratch_.address(), ++flushes_, scratch_.bytes()); }

void GpuHarness::hold() const {
  volatile std::uint32_t* released = released_.as<volatile std::uint32_t>();
  std::uint32_t number = ++holds_;
  std::uint64_t most = kLongestHold;
  void* arguments[] = {&released, &number, &most};
  hold_.launch(1, 1, arguments);
}

void GpuHarness::release() const { *released_.as<volatile std::uint32_t>() = holds_; }

void GpuHarness::touch(std::span<const GpuRegion> memory) const {
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

void GpuHarness::scrub_shared_memory() const {
  std::uint32_t words = static_cast<std::uint32_t>(gpu_.facts().smem_max / 4);
  void* arguments[] = {&words};
  scrub_.launch(static_cast<unsigned>(gpu_.facts().sms), 1024, arguments, words * 4);
}

void GpuHarness::read_memory(device::GpuAddress from, std::uint64_t bytes, unsigned blocks_an_sm) const {
  std::uint64_t count = bytes / 16;
  device::GpuAddress sink = scratch_.address();
  void* arguments[] = {&from, &count, &sink};
  read_.launch(static_cast<unsigned>(gpu_.facts().sms) * blocks_an_sm, kThreads, arguments);
}

void GpuHarness::copy_memory(device::GpuAddress to, device::GpuAddress from, std::uint64_t bytes,
                             unsigned blocks_an_sm) const {
  std::uint64_t count = bytes / 16;
  void* arguments[] = {&to, &from, &count};
  copy_.launch(static_cast<unsigned>(gpu_.facts().sms) * blocks_an_sm, kThreads, arguments);
}

void GpuHarness::launch_nothing() const { nothing_.launch(1, 32, nullptr); }

bool GpuHarness::pools_are_whole() const {
  *flag_.as<int>() = 0;
  compare(pools_.address(), reinterpret_cast<device::GpuAddress>(pinned_pools_.data()), pools_.bytes(), 0,
          flag_.as<int>());
  gpu_.settle(10);
  return *flag_.as<int>() == 0 && *released_.as<volatile std::uint32_t>() == holds_;
}

GpuTimes GpuHarness::time_calls(std::span<const GpuRegion> memory,
                                const std::function<device::GpuOutcome()>& calls, double timeout_s) {
  flush_l2();
  touch(memory);
  return time_queued(calls, timeout_s);
}

GpuTimes GpuHarness::time_queued(const std::function<device::GpuOutcome()>& calls, double timeout_s) {
  using Clock = std::chrono::steady_clock;
  GpuTimes times;
  hold();
  try {
    start_.record();
    const Clock::time_point begin = Clock::now();
    times.outcome = calls();
    times.enqueue_ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
    stop_.record();
    times.late = times.outcome.ok() && start_.passed();
  } catch (...) {
    release();
    throw;
  }
  release();
  if (times.outcome.ok()) read_clock(times, timeout_s);
  return times;
}

double GpuHarness::time_at_once(const std::function<void()>& work, double timeout_s) {
  hold();
  try {
    start_.record();
    work();
    stop_.record();
  } catch (...) {
    release();
    throw;
  }
  release();
  gpu_.settle(timeout_s, timeout_s);
  return device::GpuEvent::ns_between(start_, stop_);
}

void GpuHarness::read_clock(GpuTimes& times, double timeout_s) {
  times.outcome = gpu_.wait(timeout_s);
  if (!times.outcome.ok()) return;
  times.queued_ns = device::GpuEvent::ns_between(start_, stop_);
  timed_ns_ += times.queued_ns;
}

GpuTimes GpuHarness::time_idle(const std::function<device::GpuOutcome()>& call, double timeout_s) {
  flush_l2();
  GpuTimes times;
  times.outcome = gpu_.wait(timeout_s);
  if (!times.outcome.ok()) return times;
  const auto begin = std::chrono::steady_clock::now();
  start_.record();
  times.outcome = call();
  stop_.record();
  if (!times.outcome.ok()) return times;
  read_clock(times, timeout_s);
  times.host_ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
  return times;
}

}  // namespace warpsmith::measure
