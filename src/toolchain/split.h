// Kernels whose threads wait for one another, as loops over threads between the places where they wait
// ("regions"). No fibers, and g++ can vectorise each loop. Variables that live across a region's end become
// arrays with an element a thread.
//
// Taken are kernels made of declarations, statements that do not wait, `__syncthreads();`, `__syncwarp();`,
// shuffles with a full mask in statements of their own, loops and branches around those that are the same for
// all threads of the block, and branches around shuffles that are not. Everything else runs on fibers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scan.h"

namespace warpsmith::toolchain {

// A change to the source: tokens [first, last] are replaced where `removes`, else `text` goes before `first`.
struct SplitEdit {
  std::size_t first = 0, last = 0;
  bool removes = false, after = false;  // `after`: behind `first` instead
  std::string text;
};

// Changes that make the kernel do a whole block in one call, or nothing where it must run on fibers.
std::optional<std::vector<SplitEdit>> split_kernel(const CleanSource& source, const Scan& scan,
                                                   const Function& kernel);

}  // namespace warpsmith::toolchain
