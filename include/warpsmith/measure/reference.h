// A task's reference: its TorchScript program, run as eager PyTorch would run it, operator by operator.
//
// Graph executor optimisation, profiling executor and fusers are off: torch turns its TorchScript fuser on by
// default, and a fused reference is another baseline. The interpreter costs about 1 µs an operator, where
// eager Python costs 3 to 5 µs: the baseline is a little faster than what a user sees, and speedups a little
// lower.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/task/task.h"

namespace warpsmith::measure {

struct Comparison;  // compare.h

// One output of a reference, as plain numbers. Floating outputs are in `reals`, others in `integers`.
struct OutputValues {
  task::Dtype dtype = task::Dtype::kFloat32;
  std::vector<std::int64_t> shape;
  std::vector<double> reals;
  std::vector<std::int64_t> integers;
  bool signed_zeros = false;  // as what is expected: -0 and +0 are different
  std::uint64_t memory_bytes() const { return (reals.size() + integers.size()) * 8; }
};

// A reference does not run in float64, for it makes tensors of a narrower type of its own. (Where there is no
// memory for it, that is an Error: there may be some when others are gone.)
struct NoFloat64 : Error {
  using Error::Error;
};

// Where a reference runs.
enum class Place { kHost, kGpu };

// Process-wide settings of torch, as eager as the protocol asks, and strict math. Once, before any Reference
// is made. `threads`: of an operator on the host.
void configure_torch(int threads);
// torch's process-wide flags for "strict" (no TF32, no accumulation below float32) or "torch_default" (as
// torch comes). A Reference sets those of its task before each run.
void set_math(const std::string& math);
// Loads torch's CUDA part, which the programs are not linked with: it costs 0.4 s and 350 MB where no GPU is
// used. Throws Error where this torch has none. Touches no GPU.
void load_torch_cuda();
// While it lives, what torch enqueues in this thread goes to `stream` (a CUstream, which must outlive torch's
// use of it), with memory of that stream's own. To be used where load_torch_cuda() was, and in the order of a
// stack.
class OnTorchStream {
 public:
  explicit OnTorchStream(void* stream);
  ~OnTorchStream();
  OnTorchStream(const OnTorchStream&) = delete;
  OnTorchStream& operator=(const OnTorchStream&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};
// What was set, for device facts: torch's version, CPU capability, mkldnn, threads.
std::map<std::string, std::string> torch_facts();

// Runs at the task's `math` (where a workflow has a say, that of task::under_math()). Not thread-safe.
class Reference {
 public:
  // Throws InvalidInput with torch's message, naming task.yaml, where the program does not compile or has no
  // `forward`, or the task's `prepare` does not compile; Error where the file of as_module()'s state cannot
  // be read.
  explicit Reference(const task::Task& task, Place place = Place::kHost);
  ~Reference();
  Reference(Reference&&) noexcept;
  const task::Task& task() const;

  // Makes of the draws of the task's inputs, in order, what its `prepare` makes of them
  // (answers/preparation.h); without one nothing. `memory`: where they lie, which may be the host while the
  // reference runs on the GPU.
  void prepare(const task::Dims& dims, const std::vector<std::span<std::byte>>& inputs,
               Place memory = Place::kHost) const;

  // Inputs are the bytes of the task's inputs, in order, in the dtypes and at the shapes that they have at
  // `dims`; they are only read, and copied where the reference works in place. Throws Error with torch's
  // message where it fails or where an output has another dtype, shape or number than the task says. These
  // bytes are the host's, also where the reference runs on the GPU.
  std::vector<OutputValues> run(const task::Dims& dims,
                                const std::vector<std::span<const std::byte>>& inputs) const;
  // The same in float64: floating inputs are cast up, outputs come as they are. The right answer. Throws
  // NoFloat64 where it fails in it.
  //
  // Behind do_without_float64() the right answer is the reference's own under strict math, and its error is
  // what it costs that each floating input is one rounding away: run_near().
  std::vector<OutputValues> run_oracle(const task::Dims& dims,
                                       const std::vector<std::span<const std::byte>>& inputs) const;
  // Whose distance from the right answer is the reference's own error: run(), or, behind
  // do_without_float64(), with each floating input one rounding away.
  std::vector<OutputValues> run_near(const task::Dims& dims,
                                     const std::vector<std::span<const std::byte>>& inputs) const;
  // For all calls that are bound from now on. `why`: NoFloat64's words.
  void do_without_float64(const std::string& why) const;
  // Those; empty: right answers are in float64.
  const std::string& without_float64() const;
  // The same with floats rounded to TF32. Where the reference runs on a GPU at `torch_default` and convolves,
  // cuDNN may do that or not, as it likes, shape by shape: rounds_to_tf32().
  std::vector<OutputValues> run_rounded(const task::Dims& dims,
                                        const std::vector<std::span<const std::byte>>& inputs) const;
  bool rounds_to_tf32() const;
  // Gives back what torch keeps of the GPU's memory for later, so that nothing of an answer can be read
  // there. On the host: nothing.
  void release_memory() const;

  // compare() (compare.h) by output, made where the reference runs:
  // of `got` with `expected`, the bytes of all outputs at `dims`. `bounds`: by
  // output. Throws Error where a size is not the output's.
  std::vector<Comparison> compare(const task::Dims& dims, const std::vector<std::span<const std::byte>>& got,
                                  const std::vector<std::span<const std::byte>>& expected,
                                  const std::vector<double>& bounds) const;

  // Calls bound to operands, for timing: `sets` calls, each with inputs of its own in memory that the caller
  // keeps alive.
  class Calls {
   public:
    ~Calls();
    Calls(Calls&&) noexcept;
    // Runs calls first…first+count-1 one after the other; nanoseconds on the steady clock, all together. The
    // outputs stay alive until the next run.
    std::int64_t run(int first, int count);
    // Memory of the outputs of the last run, to be flushed. Empty before the first.
    std::vector<std::span<const std::byte>> output_memory() const;
    // Copies those outputs of the last run that lie in inputs: a reference that works in place returns them.
    // To be called before inputs are filled anew while the outputs are still needed.
    void keep_outputs();
    // Frees the outputs, so that the next run's come from memory that is mapped already.
    void drop_outputs();
    // A part of the outputs of the last run's first call, as if a call at `dims` had given them: those that
    // begin at `first` along their first axis, or all of them. It is a view: this one must keep its outputs
    // meanwhile.
    Calls part(const task::Dims& dims, std::int64_t first) const;
    // Outputs of the last run's call `number`, counted from its first.
    std::vector<OutputValues> outputs(int number) const;
    // Reference::compare() of `got` with what the last run's call `number` gave.
    std::vector<Comparison> compare(int number, const std::vector<std::span<const std::byte>>& got,
                                    const std::vector<double>& bounds) const;
    // The same of what the last run's call `got_number` of `got` gave.
    std::vector<Comparison> compare(int number, const Calls& got, int got_number,
                                    const std::vector<double>& bounds) const;
    // The same of one output.
    Comparison compare_output(int number, std::size_t output, std::span<const std::byte> got,
                              double bound) const;
    // By output the least and the largest element of what the last run's call `number` gave; both NaN where
    // one is a NaN or an infinity.
    std::vector<std::pair<double, double>> ranges(int number) const;
    // default_bound() (compare.h) by output: these are outputs in the reference's own precision, `oracle`'s
    // those in float64 for the same inputs, of the first call of each one's last run. 0 for integers.
    // `decidable`: false where Asked::decidable (oracle.h) is.
    std::vector<double> default_bounds(const Calls& oracle, bool* decidable) const;
    // tf32_bound() (compare.h) by output, where this is of bind_rounded().
    std::vector<double> tf32_bounds(const Calls& oracle) const;

   private:
    friend class Reference;
    struct State;
    explicit Calls(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };
  // inputs[set][input]; at Place::kGpu addresses on the device. There run() only enqueues, on the default
  // stream.
  Calls bind(const task::Dims& dims, const std::vector<std::vector<std::span<std::byte>>>& inputs) const;
  // As run_near().
  Calls bind_near(const task::Dims& dims, const std::vector<std::vector<std::span<std::byte>>>& inputs) const;
  // The same with floats rounded to TF32 in each run.
  Calls bind_rounded(const task::Dims& dims,
                     const std::vector<std::vector<std::span<std::byte>>>& inputs) const;
  // The same in float64, as run_oracle(): each run casts floating inputs up. run() throws NoFloat64 where it
  // fails in it.
  Calls bind_oracle(const task::Dims& dims,
                    const std::vector<std::vector<std::span<std::byte>>>& inputs) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What torch keeps of the GPU's memory for later, although nobody holds it.
void release_cached_gpu_memory();

}  // namespace warpsmith::measure
