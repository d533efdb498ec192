// A task: a computation to speed up. Format document: datasets/README.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/task/expression.h"

namespace warpsmith::task {

enum class Dtype {
  kFloat64,
  kFloat32,
  kFloat16,
  kBfloat16,
  kFloat8E4m3,
  kFloat8E5m2,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUint8,
  kBool
};
std::string_view to_string(Dtype dtype);  // "float32", …
std::optional<Dtype> parse_dtype(std::string_view name);
std::size_t size_of(Dtype dtype);  // bytes
bool is_floating(Dtype dtype);

// How an input's values are made.
//   normal(mean, deviation) | uniform(low, high) | integers(low, high) (high excluded; bounds may be
//   expressions) | zeros | ones | permutation (of 0…n-1, int types) | bernoulli(p) | choice(a, b, …) of
//   evenly spaced numbers
// and in distributions alone, with values within values:
//   choice of any numbers | mix(p, values, others) | sorted(values) | descending(values) | by_row(values)
struct ValueSpec {
  std::string kind = "normal";
  std::vector<Expression> arguments;  // reals over the task's dims: see value_argument()
  std::vector<ValueSpec> parts;       // the values that mix, sorted, … are made of
};
std::string to_string(const ValueSpec& values);  // "mix(1 / N, choice(nan), normal(0, 1))"

// `data`: new values every round. `parameter`, `buffer`: fixed for an instance, named as in state_dict.
// `init`: constructor argument.
enum class Role { kData, kParameter, kBuffer, kInit };

struct TensorSpec {
  std::string name;
  Role role = Role::kData;
  Dtype dtype = Dtype::kFloat32;
  std::vector<Expression> shape;  // over the task's dims; empty: a scalar tensor
  // Inputs only. Strides in elements (empty: contiguous; 0 repeats an element), and how many elements its
  // address lies behind a 256-byte boundary (nothing: 0).
  std::vector<Expression> strides;
  std::optional<Expression> offset;
  ValueSpec values;        // inputs only
  std::string state_dict;  // of a module's parameter or buffer: its name there
  // Outputs only, floating types: where the right answer is a zero its sign counts.
  bool signed_zeros = false;
};

struct ScalarSpec {
  std::string name;
  bool is_float = true;
  double value = 0;  // exact for integers below 2^53
};

// One operator of a chain, on what the one before it gave.
struct CudnnStep {
  std::string op;  // relu, sigmoid, tanh, gelu, gelu_tanh, swish, exp, sqrt, rsqrt, abs, neg; add, sub, mul,
                   // div, max, min
  std::string operand;  // the second operand of the last six: an input; empty: `number`
  double number = 0;
};

// The one call of cuDNN that does all of a task: how baseline `cudnn` is had.
struct CudnnSpec {
  // relu, sigmoid, tanh, softmax, max_pool, average_pool, convolution, sum; of its graphs matmul, layer_norm,
  // rms_norm, pointwise
  std::string op;
  // A name; of a convolution or a matmul two; of a norm data, weights and (rms_norm: perhaps) bias; of a
  // chain what it begins with.
  std::vector<std::string> inputs;
  // Pooling and convolution, over the last two dimensions: [height, width].
  std::vector<int> window, stride = {1, 1}, padding = {0, 0}, dilation = {1, 1};
  std::vector<int> axes;         // sum: those that vanish (empty: all); softmax: one
  double epsilon = 0;            // norms
  std::vector<CudnnStep> steps;  // pointwise
};

using Dims = std::map<std::string, std::int64_t>;  // symbol -> size: one shape of a task

// Which share of the data a task belongs to where a workflow does not say.
enum class Split { kTrain, kSftOnly, kHeldoutCombination, kHeldoutOperation, kHeldoutLength, kExtra };
// "train", "sft_only", "heldout_combination", "heldout_operation", "heldout_length", "extra"
std::string_view to_string(Split split);

struct Task {
  std::string id;  // folder name
  std::string title;
  int level = 1;  // 1 single operator, 2 chain, 3 block
  Split split = Split::kTrain;
  std::vector<std::string> ops;     // its parts
  std::vector<std::string> dims;    // symbols
  std::vector<TensorSpec> inputs;   // in the order of the reference's parameters
  std::vector<ScalarSpec> scalars;  // follow the inputs in the reference's parameters
  std::vector<TensorSpec> outputs;  // "out", or "out0", "out1", …
  std::string reference;            // TorchScript source with a function `forward`
  // TorchScript source with a function `prepare`, and the inputs (their numbers) that it takes and gives
  // back: what it makes of the draws of their values is what calls get. Empty: the draws are.
  std::string prepare;
  std::vector<std::size_t> prepared;
  // Where the task is a module in KernelBench's form: its text, with `Model`, `get_inputs`,
  // `get_init_inputs`. Empty: it is none.
  std::string module;
  // as_module() alone: parameters and buffers that the module has of itself; they follow the inputs in the
  // reference's parameters. And the file with their bytes, one after the other (measure/module_state.h).
  std::vector<TensorSpec> state;
  std::filesystem::path state_file;
  std::vector<Dims> timing;      // shapes that are timed (on_device()); the first is the score's
  std::vector<Dims> hidden;      // shapes for checks only
  std::vector<Dims> gpu_timing;  // shapes that GPUs time; empty: those of `timing`
  std::string small;             // why its shapes are small on a GPU, too; empty: they are not on purpose
  std::vector<std::map<std::string, ValueSpec>>
      distributions;  // further value distributions for checks, by input
  std::optional<Expression> flops, bytes;
  std::optional<double> tolerance;  // absolute bound; nothing: the protocol's default
  std::string math = "strict";      // or "torch_default"
  // Why a speedup says nothing here (a program that computes nothing passes): left out of headlines. Empty:
  // it says something.
  std::string degenerate;
  // Where somebody else's task comes from: the rules for folders of tasks of ours do not hold for it. Empty:
  // it is ours.
  std::string imported;
  std::optional<CudnnSpec> cudnn;  // nothing: cuDNN has no such operator
  std::uint64_t memory_bytes = 1ull << 30;
  std::filesystem::path folder;
  std::string digest;      // SHA-256 of what this device needs of task.yaml: on a CPU all but `gpu_timing`
  std::string gpu_digest;  // SHA-256 of task.yaml
};

// The task as a device of this kind ("cpu", or a GPU type) times it. load_task() gives a CPU's. On a GPU that
// has shapes of its own, those of the CPU become hidden ones. May be applied again.
Task on_device(Task task, std::string_view device_kind);

// A task that is a module, as a module meets it: its inputs are those of role `data`, and `state` the others,
// with the values that the module has when it is made. Another task is given back as it is.
Task as_module(Task task);

// The math that counts for a task where the workflow asks for `asked`: "torch_default" where either of them
// says so, else "strict".
std::string math_of(const Task& task, const std::string& asked);
// The task as such a workflow measures it: its own `math` is the one that counts.
Task under_math(Task task, const std::string& asked);

// Shape of a tensor of the task at `dims`. Throws Error on overflow or a negative size.
std::vector<std::int64_t> shape_at(const TensorSpec& tensor, const Dims& dims);
// Those of a contiguous tensor where none are said. Throws as shape_at().
std::vector<std::int64_t> strides_at(const TensorSpec& tensor, const Dims& dims);
// Shape of the memory that it lies in, gaps between its elements included: its own where it is contiguous,
// else one dimension. Throws as shape_at().
std::vector<std::int64_t> memory_shape_at(const TensorSpec& tensor, const Dims& dims);
// Bytes between its address and the 256-byte boundary before it. Throws Error.
std::uint64_t misalignment_at(const TensorSpec& tensor, const Dims& dims);

// An argument of `values` at `dims`, as a real number. Throws Error where it cannot be evaluated.
double value_argument(const ValueSpec& values, std::size_t index, const Dims& dims);
// The numbers of a `choice` where they are evenly spaced: number k is exactly base + k * step in float, each
// operation rounded by itself. Nothing where they are not. Throws as value_argument().
struct EvenChoice {
  float base = 0, step = 0;
  std::size_t count = 0;
};
std::optional<EvenChoice> even_choice(const ValueSpec& values, const Dims& dims);
// Names the dims as an expression sees them. `dims` must outlive the scope.
Scope dims_scope(const Dims& dims);

// One file under <task>/candidates/<expected>/<name>.cu; `expected` is the verdict that it must get.
// The folder wrong_hidden also expects wrong_output: right at the timing shapes, wrong at a hidden one.
struct CandidateFile {
  std::string name;  // file name without .cu
  std::string
      expected;  // folder name: "ok", "compile_error", "wrong_output", "wrong_hidden", or another verdict
  std::filesystem::path path;
  std::string source;
};

// Loads <folder>/task.yaml. Mistakes go to `diagnostics`; nothing is returned where there are any.
std::optional<Task> load_task(const std::filesystem::path& folder, Diagnostics& diagnostics);
// The same from the text of folder/task.yaml.
std::optional<Task> load_task_text(std::string_view text, const std::filesystem::path& folder,
                                   Diagnostics& diagnostics);
std::vector<CandidateFile> load_candidate_files(const Task& task, Diagnostics& diagnostics);
// Those in <task>/templates/, right ones: what templates write for a synthesised task that is to be solved by
// a model. Nothing is learned from them; what a model writes is compared with them.
std::vector<CandidateFile> load_template_files(const Task& task, Diagnostics& diagnostics);
// All tasks below `folder` (each subfolder with a task.yaml), sorted by id.
std::vector<Task> load_tasks(const std::filesystem::path& folder, Diagnostics& diagnostics);
// The same, for work on the tasks `ids` alone: mistakes in others go to `elsewhere`, and such tasks are left
// out.
std::vector<Task> load_tasks(const std::filesystem::path& folder, const std::set<std::string>& ids,
                             Diagnostics& diagnostics, Diagnostics& elsewhere);

}  // namespace warpsmith::task
