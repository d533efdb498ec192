// Whether a GPU is what its label says: by what the label's GPUs are sold as, and by other GPUs of the label.
// Pure functions of what probes have measured.
//
//   gpu_doubts(gpu, "H100", others) -> {"reads 4.31 TB/s, and an H100 has at most 3.90", …}
#pragma once

#include <span>
#include <string>
#include <vector>

#include "warpsmith/records/ceilings.h"

namespace warpsmith {

// Whether anything is known here of what a type is sold as.
bool has_data_sheet(const std::string& type);

// Reasons to doubt it, for people; none: it fits. `type`: the label as a GPU type ("H100"); of one that is
// not known nothing is said but by `others`, which are of the same label, GPUs or earlier probes. Chips of
// one design compute the same bits: a reason then says so.
std::vector<std::string> gpu_doubts(const Ceilings& gpu, const std::string& type,
                                    std::span<const Ceilings> others);

}  // namespace warpsmith
