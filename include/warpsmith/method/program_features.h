// A program as numbers that a model of its speed can learn from: how often words of CUDA stand in its source,
// how it is launched, and what its compiler said of it. They are about its look: two programs with the same
// numbers may differ.
#pragma once

#include <string>
#include <vector>

#include "warpsmith/records/candidate.h"
#include "warpsmith/records/measurement.h"

namespace warpsmith::method {

// In the order of program_features().
const std::vector<std::string>& program_feature_names();

// Finite numbers. Counts and sizes as log2(1 + n); what is not known is -1.
std::vector<double> program_features(const Candidate& candidate, const CodeFacts& code);

}  // namespace warpsmith::method
