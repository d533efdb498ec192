// A chain of operators over a matrix: what a synthesised task computes.
//
//   start: the matrix itself | rows of a table by index | a matrix product, whose left factor may have been
//          changed by elementwise steps | windows of a batch of tensors, pooled or convolved; elementwise
//          steps may have changed these tensors, too
//   steps: elementwise, with a second operand or without; and norms of rows
//   end:   nothing | a reduction of rows, columns or all | a scan of rows | a transposition
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace warpsmith::synthesis {

// One pass over a row, whose result later passes and steps may use: `term` of the element `v` and of the
// results before it, `{0}` and `{1}`, folded; `finish` makes the result of the fold `{a}`. In CUDA C++.
enum class Fold { kSum, kMax, kMin };
struct Pass {
  Fold fold = Fold::kSum;
  const char* term = "v";
  const char* finish = "{a}";
};

enum class Place {
  kStart,      // x itself, a table's rows, a product, windows
  kElement,    // v becomes a function of v
  kOperand,    // of v and of an element of another input, or of what the chain began with
  kRow,        // of v and of results of passes over its row
  kRowEnd,     // a row becomes a number
  kColumnEnd,  // a column does
  kAllEnd,     // all elements do
  kScan,       // each element becomes the sum up to it
  kTranspose
};

// Where the second operand of an element lies; kStart: it is what the start made, before all steps.
enum class Operand { kNone, kMatrix, kRowVector, kColumnVector, kScalar, kStart };

// What a start makes of each window that slides over x: the largest element, their mean, or a sum with
// weights: over all channels, over each by itself, or of a single place.
enum class Windows { kNone, kMax, kMean, kFull, kDepthwise, kPointwise };

struct Operator {
  const char* name;  // as in a task's `ops`
  Place place = Place::kElement;
  // TorchScript, an expression of {v} and {o}; `{v}` may stand twice.
  const char* torch = "{v}";
  const char* module = nullptr;  // the same in Python's torch, where that has another name for it
  // CUDA C++: an expression of v, {o}, and {0}, {1} of `passes`.
  const char* cuda = "v";
  double (*value)(double v, double o) = nullptr;  // kElement, kOperand
  int flops = 1;                                  // an element
  Operand operand = Operand::kNone;
  const char* operand_name = "";    // of the input or scalar
  const char* operand_values = "";  // of the input; of a scalar its value
  std::vector<Pass> passes = {};    // kRow, kRowEnd; one of kColumnEnd, over the column
  const char* hard_values = "";     // a distribution of x that its mistakes show with; may be empty
  bool divides = false;             // by what is 0 for a row of zeros
  Windows windows = Windows::kNone;
  int rank = 0;           // dimensions that the windows slide in
  bool branches = false;  // two branches meet in it; drawn where the settings ask for branches
};

// Whether it ends a chain.
bool is_end(const Operator& one);
bool is_convolution(const Operator& one);
// "chains", "pooling", "convolution": which of the settings' `families` chains with this start belong to.
std::string_view family_of(const Operator& start);
// Whether its operand is an input of the task.
bool has_input(const Operator& one);
// Whether a step or end may stand in a chain with this start. Of windows there are no rows.
bool takes(const Operator& start, const Operator& one);

// All that the grammar knows, in a fixed order; chains name them by index.
const std::vector<Operator>& operators();
inline const Operator& op(std::size_t number) { return operators()[number]; }
const Operator& operator_named(std::string_view name);  // throws Error

// Of all inputs but an index, and of the output. Programs compute in float32.
enum class Precision { kFloat32, kFloat16, kBFloat16 };
const char* dtype_of(Precision precision);      // "float16", as in task files and in torch
const char* cuda_type_of(Precision precision);  // "half"
int bytes_of(Precision precision);              // of an element

// How the matrix that a chain begins with lies in memory: as it is, as the first half of each row of a wider
// matrix, or a column after the other.
enum class Storage { kRows, kWider, kColumns };

struct Chain {
  std::size_t start = 0;
  std::vector<std::size_t> before = {};  // kElement, on the left factor of a product, or on what windows see
  std::vector<std::size_t> steps;        // kElement, kOperand, kRow
  std::size_t end = 0;                   // operators().size(): none
  Precision precision = Precision::kFloat32;
  Storage storage = Storage::kRows;
  bool has_end() const { return end < operators().size(); }

  // Names of all operators, in order; "x" of a plain start is left out.
  std::vector<std::string> names() const;
  // Where a pair of neighbours meets: "relu>bias".
  std::vector<std::string> pairs() const;
};

// An input beside the first, as the task names it.
struct Input {
  std::string name;
  Operand operand = Operand::kMatrix;
  std::string values;
  // Of start `gather_rows`; is_table: also the factors of `matmul`, and what windows see.
  bool is_index = false, is_table = false;
};
// Of all operands in the order of their steps; names that come twice are numbered: b, b2.
std::vector<Input> inputs_of(const Chain& chain);
std::size_t start_inputs(const Chain& chain);  // how many of them the start takes
bool has_branch(const Chain& chain);
// What 16 bits it can have: none for a product or windows; bfloat16 where a value or a sum may be beyond
// float16's largest.
std::optional<Precision> half_precision_of(const Chain& chain);
// Whether its matrix may lie so: only where it begins with that matrix, and not by columns where it ends by
// transposing, which would leave nothing to do.
bool can_lie(const Chain& chain, Storage storage);
inline bool has_windows(const Chain& chain) { return op(chain.start).windows != Windows::kNone; }
std::vector<std::pair<std::string, double>> scalars_of(const Chain& chain);

// What a chain computes at a few rows and columns, in double: for tests, and for telling chains apart that
// look different. Inputs are drawn by `seed` and their names. `changed`: an input (by its number: 0 the
// first) with other values; -1: none. `by_kind`: inputs of one kind have the same values, whatever their
// names: by their order.
std::vector<double> evaluate(const Chain& chain, std::uint64_t seed, int changed = -1, bool by_kind = false);

}  // namespace warpsmith::synthesis
