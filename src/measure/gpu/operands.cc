#include "operands.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>
#include <span>

#include "harness.h"

namespace warpsmith::measure {

namespace {

constexpr std::uint64_t kAlignment = 256;  // of operands
constexpr std::uint64_t kCanaryBytes = 256;
constexpr std::uint64_t kWidestGap = 256;  // canaries
constexpr int kWindow = 64;                // sets that lie among one another
constexpr unsigned kGapThreads = 512;

std::uint64_t round_up(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

device::GpuMemory GpuMemoryPool::borrow(std::uint64_t bytes) {
  constexpr std::uint64_t kMuch = 1ull << 30;  // rounding that up may take what others need
  const std::uint64_t wanted = bytes > kMuch ? bytes : std::bit_ceil(std::max<std::uint64_t>(bytes, 2 << 20));
  if (const auto found = spare_.find(wanted); found != spare_.end()) {
    device::GpuMemory memory = std::move(found->second);
    spare_.erase(found);
    return memory;
  }
  try {
    return device::GpuMemory(wanted);
  } catch (const device::GpuError& e) {
    if (e.outcome().verdict != Verdict::kOutOfMemory || e.outcome().context_lost) throw;
  }
  spare_.clear();
  return device::GpuMemory(bytes);
}

// No more than an eighth of the GPU: torch, and what is shared, do not ask here.
void GpuMemoryPool::give_back(device::GpuMemory memory) {
  constexpr std::size_t kAtMost = 8;
  const std::uint64_t bytes = memory.bytes();
  std::uint64_t kept = bytes;
  for (const auto& spare : spare_) kept += spare.first;
  if (device::gpu_is_lost() || spare_.size() >= kAtMost || kept > gpu_.facts().memory_bytes / 8 ||
      !std::has_single_bit(bytes))
    return;
  spare_.emplace(bytes, std::move(memory));
}

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
  memory_ = shared ? device::GpuMemory::shared(all) : harness.memory().borrow(all);
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
  if (memory_.share() == nullptr) harness_.memory().give_back(std::move(memory_));
}

device::GpuAddress GpuOperands::address(int set, std::size_t index) const {
  return memory_.address() + offsets_.at(static_cast<std::size_t>(set) * specs_.size() + index);
}

void GpuOperands::look_at_canaries() {
  *flag_.as<int>() = 0;
  if (table_.count() > 0)
    harness_.kernels().look_at_canaries(table_.address(), table_.count(), flag_.as<int>());
}

bool GpuOperands::tables_are_whole() const {
  return table_.is_whole(harness_.gpu()) && gaps_.is_whole(harness_.gpu());
}

void GpuOperands::look_between(int first_set, int sets) {
  *gap_flag_.as<int>() = 0;
  const std::size_t row = specs_.size() + 1;
  harness_.kernels().look_at_canaries(gaps_.address(static_cast<std::size_t>(first_set) * row),
                                      static_cast<unsigned>(sets) * static_cast<unsigned>(row),
                                      gap_flag_.as<int>(), kGapThreads);
}

std::optional<std::string> GpuOperands::problem() const {
  const int region = *flag_.as<int>() - 1;
  if (region < 0)
    return *gap_flag_.as<int>() == 0 ? std::nullopt : std::optional<std::string>("writes between operands");
  const std::string& name = specs_[static_cast<std::size_t>(region / 2) % specs_.size()].name;
  return (region % 2 == 0 ? "writes before `" : "writes behind `") + name + "`";
}

}  // namespace warpsmith::measure
