// What a candidate is checked on, and the right answers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "warpsmith/measure/compare.h"
#include "warpsmith/measure/reference.h"
#include "warpsmith/measure/values.h"

namespace warpsmith::measure {

// One check: a shape, a distribution of the values (-1: the task's own, else an index in task.distributions)
// and a seed.
struct CheckCase {
  task::Dims dims;
  bool hidden = false;
  int distribution = -1;
  int seed = 0;
};

// Every shape of the task with `seeds` seeds of its own distribution and one of each other distribution; the
// smallest shapes first, so that most wrong candidates are found for the price of a small call.
std::vector<CheckCase> check_cases(const task::Task& task, int seeds);

// "M=3 N=33"
std::string describe(const task::Dims& dims);
// "r: zeros, x: normal(0, 4)"
std::string describe(const std::map<std::string, task::ValueSpec>& distribution);
// "hidden shape M=3 N=33, seed 1", "shape M=256 N=512, distribution 2 (x: integers(0, 3))"
std::string describe(const CheckCase& check, const task::Task& task);

// Of the memory of one tensor, gaps between its elements included; of all inputs; of all outputs.
std::uint64_t tensor_bytes(const task::TensorSpec& tensor, const task::Dims& dims);
std::uint64_t input_bytes(const task::Task& task, const task::Dims& dims);
std::uint64_t output_bytes(const task::Task& task, const task::Dims& dims);
// Whether inputs and outputs of one call take over 4 MiB: such answers take long to make and to compare.
bool is_large(const task::Task& task, const task::Dims& dims);

// What an input (its number) is filled with. distribution: as in CheckCase.
const task::ValueSpec& values_of(const task::Task& task, std::size_t input, int distribution);
// Fills the host's memory of the inputs (in order) of the reference's task at `dims`, gaps included, as its
// `prepare` leaves them. distribution: as in CheckCase.
void fill_inputs(const ValueSource& source, const Reference& reference, const task::Dims& dims,
                 int distribution, std::uint64_t seed, std::uint64_t use,
                 const std::vector<std::span<std::byte>>& inputs);

// What a check asks of an answer.
struct Asked {
  std::vector<double> bounds;  // by output, absolute; 0 for integers
  // Nothing can be asked of anybody where the reference, in its own precision, misses the right answer by
  // more than rounding: an integer that differs (a near tie in an argmax), a NaN or infinity that float64
  // does not have. Such a case is skipped.
  bool decidable = true;
  std::string undecidable_because;
};

struct Expected : Asked {
  std::vector<OutputValues> outputs;  // in the order of the task's
};

// Memory of a program's inputs or outputs, by set and operand.
using InputSets = std::vector<std::vector<std::span<std::byte>>>;
using OutputSets = std::vector<std::vector<std::span<const std::byte>>>;

// What an output's right answer is like at a check: what task_check.h asks.
struct AnswerFacts {
  double bound = 0;            // as Asked has it
  double least = 0, most = 0;  // of its elements; both NaN where one of them is a NaN or an infinity
  std::vector<bool> is_input;  // by input: whether its bytes, as they are, would be right
};

// An output of a check.
struct Compared {
  std::vector<Comparison> with_right;  // by set
  bool agree = true;                   // the sets with each other, within the bound
};

// Inputs and right answers of a task, for programs that run on the host. Answers are made on demand and kept
// for the next candidates while they fit `budget_bytes`. They live in this process alone. Not thread-safe.
// GpuOracle (src/measure/gpu/oracle.h) serves programs whose operands lie on a GPU.
class Oracle {
 public:
  Oracle(const task::Task& task, const Reference& reference, const ValueSource& source, std::uint64_t seed,
         std::uint64_t budget_bytes = 1ull << 30);
  virtual ~Oracle() = default;
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;

  // Inputs of a check, where the programs have theirs: a function of the seed given above, the task and the
  // case.
  virtual void fill(const CheckCase& check, const std::vector<std::span<std::byte>>& inputs) const;
  // The number of the first input that is not as fill() has left it. On the host nothing: there run() finds
  // it.
  virtual std::optional<std::size_t> changed_input(const CheckCase& check, const InputSets& sets);
  // Reference::without_float64()
  const std::string& without_float64() const { return reference_.without_float64(); }
  // Found once, and kept. Throws Error where the reference fails. Where it fails in float64, right answers
  // are its own from then on (Reference::do_without_float64()).
  Asked asked(const CheckCase& check);
  // Bounds come from the reference's own errors. One call whose answers are few, or nearly all zeros, tells
  // little of these. So this looks at more seeds of the case's shape and distribution; true where that makes
  // a bound of the case wider. It looks at none where the task says its tolerance.
  bool widen(const CheckCase& check);
  // What one or two calls on equal inputs have given, by output.
  virtual std::vector<Compared> compare(const CheckCase& check, const OutputSets& sets);

  // Of a decidable case, by output. Throws as asked() does.
  virtual std::vector<AnswerFacts> facts(const CheckCase& check);
  // Whether other values of this input (its number), all else the same, make some output wrong. Nothing where
  // the input has the same values always. Throws as asked() does.
  virtual std::optional<bool> needs(const CheckCase& check, std::size_t input);

  // The right answer for the inputs that fill() makes, in the host's memory. Throws as asked() does.
  std::shared_ptr<const Expected> expected(const CheckCase& check);
  // Bounds for timed calls at `dims`: the largest of the checks' there that were asked for so far; without
  // any the task's tolerance, or 0.
  std::vector<double> bounds_at(const task::Dims& dims) const;

 protected:
  using Key = std::tuple<task::Dims, int, int>;
  static Key key_of(const CheckCase& check) { return {check.dims, check.distribution, check.seed}; }
  static std::uint64_t use_of(const CheckCase& check);  // for input_key()
  static std::uint64_t use_of_others();                 // for the other values of needs()
  // Whether the bytes of an input can be those of an output at `dims`.
  bool may_be(std::size_t input, std::size_t output, const task::Dims& dims) const;
  virtual Asked ask(const CheckCase& check);  // what asked() keeps
  // What counts for an output, given its default bound: the task's tolerance, if it has one; integers are
  // exact.
  double bound_of(std::size_t output, double default_bound) const;
  // Why a case is not decidable, given the reference's outputs in its own precision and those in float64;
  // empty where it is.
  std::string misses(const std::vector<OutputValues>& own, const std::vector<OutputValues>& right) const;
  const task::Task& task() const { return task_; }
  const Reference& reference() const { return reference_; }
  std::uint64_t seed() const { return seed_; }

 private:
  // What `make` gives; again where the reference does not run in float64, without that.
  template <typename Make>
  auto in_a_type_that_works(const Make& make) {
    try {
      return make();
    } catch (const NoFloat64& e) {
      forget_float64();
      reference_.do_without_float64(e.what());
    }
    return make();
  }
  // Calls of the reference in float64 that are bound.
  virtual void forget_float64() {}
  void note_bounds(const CheckCase& check, const Asked& asked);
  void fill_host(const CheckCase& check, const std::vector<std::span<std::byte>>& inputs) const;
  std::shared_ptr<const Expected> make(const CheckCase& check) const;

  const task::Task& task_;
  const Reference& reference_;
  const ValueSource& source_;
  std::uint64_t seed_, budget_bytes_, used_bytes_ = 0;
  std::map<Key, std::shared_ptr<const Expected>> kept_;
  std::map<Key, Asked> asked_;
  std::map<task::Dims, std::vector<double>> bounds_;
};

}  // namespace warpsmith::measure
