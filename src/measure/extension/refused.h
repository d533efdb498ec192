// Which sandbox candidates with host code want.
#pragma once

#include <string>

#include "warpsmith/process/child.h"

namespace warpsmith::measure {

// Why candidates with host code are not run in a sandbox of this level; empty: they are. Their filter lets
// them open files, so the level must guard these.
std::string host_code_refused(process::SandboxLevel level, bool unsandboxed);

}  // namespace warpsmith::measure
