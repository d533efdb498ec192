// What a candidate is checked on, and the right answers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

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

// Fills the memory of the task's inputs (in order) at `dims`, gaps included. distribution: as in CheckCase.
void fill_inputs(const ValueSource& source, const task::Task& task, const task::Dims& dims, int distribution,
                 std::uint64_t seed, std::uint64_t use, const std::vector<std::span<std::byte>>& inputs);

struct Expected {
  std::vector<OutputValues> outputs;  // in the order of the task's
  std::vector<double> bounds;         // absolute, by output; 0 for integers
  // Nothing can be asked of anybody where the reference, in its own precision, misses the right answer by
  // more than rounding: an integer that differs (a near tie in an argmax), a NaN or infinity that float64
  // does not have. Such a case is skipped.
  bool decidable = true;
  std::string undecidable_because;
};

// Right answers of a task, made on demand and kept for its next candidates while they fit `budget_bytes`.
// They live in this process alone. Not thread-safe.
class Oracle {
 public:
  Oracle(const task::Task& task, const Reference& reference, const ValueSource& source, std::uint64_t seed,
         std::uint64_t budget_bytes = 1ull << 30);

  // Inputs of a check: a function of the seed given above, the task and the case.
  void fill(const CheckCase& check, const std::vector<std::span<std::byte>>& inputs) const;
  // The right answer for the inputs that fill() makes. Throws Error where the reference fails.
  std::shared_ptr<const Expected> expected(const CheckCase& check);
  // Bounds for timed calls at `dims`: the largest of the checks' there that were asked for so far.
  std::vector<double> bounds_at(const task::Dims& dims) const;

 private:
  using Key = std::tuple<task::Dims, int, int>;
  std::shared_ptr<const Expected> make(const CheckCase& check) const;

  const task::Task& task_;
  const Reference& reference_;
  const ValueSource& source_;
  std::uint64_t seed_, budget_bytes_, used_bytes_ = 0;
  std::map<Key, std::shared_ptr<const Expected>> kept_;
  std::map<task::Dims, std::vector<double>> bounds_;
};

}  // namespace warpsmith::measure
