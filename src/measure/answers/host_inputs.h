// The inputs of one call on the host, in memory of their own.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "warpsmith/measure/oracle.h"

namespace warpsmith::measure {

class HostInputs {
 public:
  HostInputs(const task::Task& task, const task::Dims& dims) {
    for (const task::TensorSpec& input : task.inputs) memory_.emplace_back(tensor_bytes(input, dims));
  }
  std::vector<std::span<std::byte>> spans() { return {memory_.begin(), memory_.end()}; }
  std::vector<std::span<const std::byte>> read_only() const { return {memory_.begin(), memory_.end()}; }
  std::span<const std::byte> bytes(std::size_t input) const { return memory_.at(input); }
  // Takes an input of `others`; false where it was the same.
  bool take(std::size_t input, HostInputs& others) {
    if (memory_.at(input) == others.memory_.at(input)) return false;
    std::swap(memory_[input], others.memory_[input]);
    return true;
  }

 private:
  std::vector<std::vector<std::byte>> memory_;
};

}  // namespace warpsmith::measure
