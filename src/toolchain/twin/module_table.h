// The table of kernels at the end of a rewritten candidate, by which the twin finds and launches them
// (warpsmith/toolchain/twin_abi.h).
#pragma once

#include <string>

#include "../common/compile_unit.h"
#include "scan.h"

namespace warpsmith::toolchain {

// As C++. Throws SourceProblem where the plan launches what is no kernel of this source.
std::string module_table(const Scan& scan, const CleanSource& source, const ModuleNames& names);

}  // namespace warpsmith::toolchain
