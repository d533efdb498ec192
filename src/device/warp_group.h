// What the lanes of a warp that meet at one warp-level operation get from it, as a GPU gives it.
#pragma once

#include <cstdint>

namespace warpsmith::device {

// The lanes of one warp that take part. A lane of the mask that has returned, or that the block is too small
// for, is no member: it votes neither way, matches nothing and adds nothing.
struct WarpGroup {
  std::uint32_t members = 0;  // bit by lane
  std::uint64_t values[32] = {}, arguments[32] = {}, results[32] = {};
};

// Fills `results` of the members; `op` is a wstw_warp_op other than kWstwActiveMask. CUDA leaves undefined
// what a lane reads by a shuffle from one that takes no part: it gets one of three values that a program can
// hardly do without noticing, NaN among them. `*undefined_reads` counts them, so that each comes in turn.
void perform(int op, WarpGroup& group, std::uint64_t* undefined_reads);

}  // namespace warpsmith::device
