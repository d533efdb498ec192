// Which names a kernel declares, anywhere in its body, and where each means what.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernel_text.h"

namespace warpsmith::toolchain {

struct Local {
  std::string name;
  std::size_t at = 0, last = 0;  // tokens: where it is declared, and the last of its scope
  bool is_reference = false;
  bool is_parameter = false;
};

// Parameters first. Where a statement could be something else it is taken for a declaration: one name too
// many costs a loop over threads, one too few a right result. Throws NotSplit.
std::vector<Local> find_locals(const KernelText& kernel);

}  // namespace warpsmith::toolchain
