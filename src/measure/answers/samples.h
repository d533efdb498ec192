// Answers that can be made some samples of a batch at a time: the float64 answer of a call that moves 12 GB
// may find no room on its GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "warpsmith/measure/oracle.h"

namespace warpsmith::measure {

// The dim that all outputs and at least one input lead with, and that no shape has anywhere else; empty where
// there is none, and where an input would not be copied to be in float64.
std::string batch_dim(const task::Task& task);

// The shape at which answers_each_sample() is asked: the smallest of the task with two samples or more, if
// its inputs and outputs take up to `most_bytes`.
std::optional<task::Dims> few_samples(const task::Task& task, const std::string& batch,
                                      std::uint64_t most_bytes);

// Whether the reference's float64 answer for each sample alone is that for all of them together. `call`: the
// inputs at `dims`, where the reference runs. False where the reference refuses one sample: a norm over the
// batch does.
bool answers_each_sample(const Reference& reference, const task::Dims& dims, const std::string& batch,
                         const std::vector<std::span<std::byte>>& call);

task::Dims with_samples(task::Dims dims, const std::string& batch, std::int64_t samples);

// A part of a call's inputs or outputs: `samples` of them from number `first`. What does not lead with
// `batch` is whole.
template <class Byte>
std::vector<std::span<Byte>> part_of(const std::vector<task::TensorSpec>& specs, const task::Dims& dims,
                                     const std::string& batch, const std::vector<std::span<Byte>>& call,
                                     std::int64_t first, std::int64_t samples) {
  const task::Dims one = with_samples(dims, batch, 1);
  std::vector<std::span<Byte>> part = call;
  for (std::size_t i = 0; i < part.size(); ++i) {
    const std::uint64_t a_sample = tensor_bytes(specs.at(i), one);
    if (tensor_bytes(specs[i], dims) == a_sample) continue;
    part[i] = part[i].subspan(static_cast<std::uint64_t>(first) * a_sample,
                              static_cast<std::uint64_t>(samples) * a_sample);
  }
  return part;
}

}  // namespace warpsmith::measure
