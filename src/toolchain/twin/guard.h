// The test at the front of most kernels, `if (i < N) …` or `if (i >= N) return;`, found so that the loop over
// threads can run over just the threads that pass it. With the test inside, g++ makes masked stores of it,
// four times slower than plain ones.
//
// That is right where the threads of a row (equal y and z) that pass are neighbours: each comparison has one
// side that grows evenly with threadIdx.x and one that does not depend on it, all of them must hold, and what
// stands before has no effects.
#pragma once

#include <vector>

#include "scan.h"

namespace warpsmith::toolchain {

struct Guard {
  std::size_t open = 0, close = 0;  // the parentheses of the condition
  bool returns = false;             // `if (…) return;`: a thread goes on where the condition fails
};

// Guards of a kernel in order; only the last can be one without `return`. Empty where there are none that can
// be used.
std::vector<Guard> find_guards(const std::vector<Token>& tokens, const Function& kernel);

// Whether the threads of the kernel that pass its guards are run without them. Macros may change what the
// source seems to say, so a kernel with others than plain numbers is not.
bool is_guarded(const Scan& scan, const CleanSource& source, std::string_view kernel);

}  // namespace warpsmith::toolchain
