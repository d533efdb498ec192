// More training data from a successful program: the same program with other block sizes, block shapes and
// names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace warpsmith::method {

struct AugmentOptions {
  int variants = 0;  // at most
  bool rename_identifiers = false;
  std::vector<int> block_sizes;  // threads of a block to try
};

struct Variant {
  std::string source;
  std::string detail;  // "block 256 -> 128", "block 32x8 -> 16x16", "renamed"; joined by ", "
};

// Variants of a `plan` source, in this order until there are `variants`:
//   other block sizes: a one-dimensional block that the plan writes as a literal (or a `let` of a literal) is
//   replaced,
//     everywhere in plan and code, by each of `block_sizes` (with it the half of it from which a reduction
//     tree counts down; a block of 32 whose lanes exchange values is a warp and stays); a square dim3(a, a)
//     by those that are squares;
//   other block shapes of as many threads, where the plan has dim3(a, b) with a ≠ b and `block_sizes` is not
//   empty; renamed identifiers (in the code, and kernels and the plan's own names in the plan, alike
//   everywhere) of the source
//     and of the variants before.
// No two are equal in layout_normal_form, nor equal to the source. Whether a variant still computes the same
// is for the compiler and the checks to say: it is to be treated like any other candidate.
std::vector<Variant> augment(std::string_view source, const AugmentOptions& options, std::uint64_t key);

}  // namespace warpsmith::method
