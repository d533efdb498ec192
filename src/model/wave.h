// Samples of a wave, by operators: see warpsmith/model/sampler.h.
#pragma once

#include <span>

#include "warpsmith/model/sampler.h"

namespace warpsmith::model {

// One sample of a wave.
struct Draw {
  const std::vector<Token>* prompt;
  std::uint64_t key;
  Sample* out;
};

// All at once, however many. No prompt is empty.
void sample_wave(const Decoder& decoder, std::span<const Draw> draws, const SamplerSettings& settings);

}  // namespace warpsmith::model
