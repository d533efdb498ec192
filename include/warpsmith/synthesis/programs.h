// Programs for synthesised tasks, from templates that compose as the tasks do: a chain's steps are lines of
// one kernel, in the manner of the candidates in datasets/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "warpsmith/synthesis/chain.h"

namespace warpsmith::synthesis {

struct Program {
  std::string name;    // "warp_per_row"
  std::string source;  // a candidate of tier `plan`
};

// All templates that fit the chain, in a fixed order; at least one. `row`: N where it is known; then no plan
// chooses by it: what does not fit it is left out. 0: any.
std::vector<Program> programs_of(const Chain& chain, std::int64_t row = 0);

}  // namespace warpsmith::synthesis
