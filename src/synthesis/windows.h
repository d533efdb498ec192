// Chains that begin with windows of a batch of tensors: their sizes, what they cost, their programs.
// traced.cc writes the rest of their tasks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "warpsmith/base/random.h"
#include "warpsmith/synthesis/traced.h"

namespace warpsmith::synthesis {

std::int64_t product_of(const std::vector<int>& sizes);
// "16 * 32": sizes [first, last), multiplied; and a text as it stands in a product.
std::string product(const std::vector<int>& sizes, std::size_t first, std::size_t last);
std::string in_brackets(const std::string& text);

using SizeDraw = std::function<int(int least, int most)>;

void draw_windows(const Chain& chain, Random& random, const SizeDraw& size, bool runs, Traced& traced);

// Sizes of what the windows make, and of the weights of a convolution, without the batch.
std::vector<int> made_sizes(const Traced& traced);
std::vector<int> weight_sizes(const Chain& chain, const Traced& traced);
// As torch initialises weight and bias.
std::string weight_values(const Chain& chain, const Traced& traced);
// "nn.Conv2d(3, 16, kernel_size=[3, 3], …)"
std::string window_module(const Chain& chain, const Traced& traced);
// What follows the tensors in the call of torch: ", [2, 2], [2, 2]"; `bias`: a convolution's own.
std::string window_arguments(const Chain& chain, const Traced& traced, const std::string& bias);

// Of an item of the batch, and of all items together.
struct WindowCosts {
  std::int64_t seen = 0, made = 0;  // elements of x and of what the windows make
  std::int64_t sums = 0;            // elements that all windows see
  std::int64_t flops = 0, window_flops = 0, bytes = 0, bytes_once = 0;
};
WindowCosts window_costs(const Chain& chain, const Traced& traced);

// Programs beside those whose elements begin with the opening; names as chains have them.
Opening opening_of(const Chain& chain, const Traced& traced);
std::vector<Program> window_programs(const Chain& chain, const Traced& traced);

}  // namespace warpsmith::synthesis
