// What the candidates of one task share on a device: reference, right answers, checks, and the baseline.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/alone.h"
#include "warpsmith/measure/measurer.h"
#include "warpsmith/measure/oracle.h"
#include "warpsmith/measure/reference.h"

namespace warpsmith::measure {

class Bench {
 public:
  virtual ~Bench() = default;
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  const task::Task& task() const { return task_; }  // its math is what counts of the workflow's and its own
  const task::Dims& timing_dims() const { return task_.timing.front(); }
  const Reference& reference() const { return reference_; }
  Oracle& oracle() { return *oracle_; }
  const std::vector<CheckCase>& cases() const { return cases_; }
  // Nanoseconds of one call of the baseline, roughly; measured when the bench was made.
  double baseline_call_ns() const { return baseline_call_ns_; }
  // Of the baseline in one timed row: the same for every candidate of the task.
  int calls() const { return calls_; }
  Alone& alone() { return alone_; }
  // By output, for timed calls; every case of the timing shape is made for it.
  std::vector<double> timed_bounds();

 protected:
  Bench(const task::Task& task, const Settings& settings, Place place);
  // Rows of the baseline with no candidate beside it: nanoseconds a call.
  virtual std::vector<double> rows_alone(int calls, std::uint64_t key) = 0;
  // Bytes of the operands of one call at the timing shape.
  std::uint64_t bytes_a_call() const;

  const task::Task task_;
  const std::uint64_t seed_;
  Reference reference_;
  // Set by who derives, before anybody asks.
  std::unique_ptr<Oracle> oracle_;
  std::vector<CheckCase> cases_;
  double baseline_call_ns_ = 0;
  int calls_ = 1;

 private:
  Alone alone_;
};

template <typename AnyBench>
bool is_bench_of(const std::unique_ptr<AnyBench>& bench, const task::Task& task) {
  return bench && bench->task().id == task.id && bench->task().digest == task.digest;
}

// The bench of `task`: the one that is there, where it is of the same task, else one that `make` makes.
template <typename AnyBench, typename Make>
AnyBench& bench_for(std::unique_ptr<AnyBench>& bench, const task::Task& task, const Make& make) {
  if (!is_bench_of(bench, task)) {
    bench.reset();  // first: both at once may be much memory
    bench = make();
  }
  return *bench;
}

}  // namespace warpsmith::measure
