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

// How an element of a chain with windows begins: lines that make `v` of its place `i` and its channel `c`.
struct Opening {
  std::vector<std::string> lines;
  std::string channel;  // "i / 64 % 16"
  bool names_channel = false;
};

// All templates that fit the chain, in a fixed order; at least one. `row`: N where it is known; then no plan
// chooses by it: what does not fit it is left out. 0: any. `opening`: of a chain with windows.
std::vector<Program> programs_of(const Chain& chain, std::int64_t row = 0, const Opening* opening = nullptr);

// The name of each step's operand: an input or a scalar; empty: it has none.
std::vector<std::string> operand_names_of(const Chain& chain);
// "v = v + b[c];": a step on an element at `i`; `name`: its operand's.
std::string step_line(const Operator& step, const std::string& name);

}  // namespace warpsmith::synthesis
