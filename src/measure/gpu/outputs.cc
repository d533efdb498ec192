#include "outputs.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace warpsmith::measure {

namespace {

constexpr int kNone = std::numeric_limits<int>::max();

}  // namespace

GpuOutputs::GpuOutputs(const GpuHarness& harness, const task::Task& task, const GpuOperands& operands)
    : harness_(harness),
      sets_(static_cast<std::uint64_t>(operands.sets())),
      outputs_(task.outputs.size()),
      flags_(sizeof(int) * std::max<std::size_t>(1, operands.specs().size())) {
  std::vector<GpuRegion> regions;
  for (std::size_t operand = task.inputs.size(); operand < operands.specs().size(); ++operand) {
    const std::size_t i = operand - task.inputs.size();
    sizes_.push_back(i < outputs_ ? static_cast<int>(task::size_of(task.outputs[i].dtype)) : 1);
    for (int set = 0; set < operands.sets(); ++set)
      regions.push_back({operands.address(set, operand), operands.specs()[operand].bytes});
  }
  regions_ = RegionTable(std::move(regions));
}

void GpuOutputs::look(int first, int count, bool written, std::uint64_t key) {
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    flags()[i] = kNone;
    if (count == 0 || (i >= outputs_ && !written)) continue;
    const std::uint64_t region = i * sets_ + static_cast<std::uint64_t>(first);
    harness_.kernels().look_for_poison(regions_.address(static_cast<std::size_t>(region)),
                                       static_cast<unsigned>(count), sizes_[i], key, !written, &flags()[i]);
  }
}

std::optional<int> GpuOutputs::found() const {
  std::optional<int> set;
  for (std::size_t i = 0; i < sizes_.size(); ++i)
    if (flags()[i] != kNone) set = std::min(set.value_or(kNone), flags()[i] - 1);
  return set;
}

}  // namespace warpsmith::measure
