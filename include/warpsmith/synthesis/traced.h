// A chain on a batch of tensors of fixed sizes, as KernelBench's modules become tasks: the reference has an
// operator of torch a line, named as torch's tracer names them, and sizes are numbers. Such a task has two
// operators at least: one alone is a task of KernelBench's level 1, by which what was learned is judged.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "warpsmith/synthesis/chain.h"
#include "warpsmith/synthesis/programs.h"
#include "warpsmith/synthesis/task_text.h"

namespace warpsmith::synthesis {

// How the factors of a product lie, and which of M, N and K is the batch.
enum class ProductForm {
  kRows,             // [BATCH, K] by [K, N]
  kBatchOfRows,      // [BATCH, S, K] by [K, N]
  kSquare,           // [BATCH, BATCH] by [BATCH, BATCH]
  kLeftTransposed,   // [BATCH, M] transposed, by [BATCH, N]
  kRightTransposed,  // [BATCH, K] by [N, K] transposed
  kBothTransposed    // [BATCH, M] by [N, BATCH], both transposed
};

// A number for each dimension that the windows slide in.
struct Window {
  std::vector<int> kernel, stride, padding, dilation;
  int channels = 0;       // of what is made
  bool has_bias = false;  // the bias right behind a convolution is its own
};

struct Traced {
  // Of x behind the batch, one to three. Of a product {K, N}, {S, K, N}, none, {M, N}, {K, N}, {M, N}. Of
  // windows the channels, and one to three more.
  std::vector<int> sizes;
  ProductForm product = ProductForm::kRows;
  std::size_t axis = 1;                       // of norms, reductions and scans: 1, or the last
  bool keep = false;                          // a reduction keeps its axis, at size 1
  double scale = 0.5;                         // what `scale` multiplies with
  std::string first = "x", second = "other";  // names of the first input, and of a matrix beside it
  Window window = {};
};

bool can_be_traced(const Chain& chain);
// torch's operators that the chain is made of, as a task of KernelBench names its parts, each way to write
// it: a product with a bias may be one operator. Nothing where there is one that no traced task has.
std::vector<std::set<std::string>> torch_operators_of(const Chain& chain);
// Sizes, axis and names, drawn by `key`; `runs`: sizes are such that the CPU twin is quick.
Traced draw_traced(const Chain& chain, std::uint64_t key, bool runs = true);

// TorchScript with `forward`.
std::string reference_of(const Chain& chain, const Traced& traced);
std::string task_file(const Chain& chain, const Traced& traced, const TaskLabel& label);
// Of a chain with windows: the module in KernelBench's form that becomes this task; gain_of() at its sizes.
std::string kernelbench_module(const Chain& chain, const Traced& traced);
double gain_of(const Chain& chain, const Traced& traced);
// Those of programs_of() that fit, at these sizes; at least one.
std::vector<Program> programs_of(const Chain& chain, const Traced& traced);

}  // namespace warpsmith::synthesis
