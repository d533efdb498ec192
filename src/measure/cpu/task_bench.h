// What the candidates of one task share: reference, right answers, the baseline's operands and its time
// alone.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "warpsmith/measure/arm.h"
#include "warpsmith/measure/measurer.h"
#include "warpsmith/measure/oracle.h"

namespace warpsmith::measure {

class TaskBench {
 public:
  TaskBench(const task::Task& task, const ValueSource& source, const Settings& settings);

  const task::Task& task() const { return task_; }  // its math is what counts of the workflow's and its own
  const task::Dims& timing_dims() const { return task_.timing.front(); }
  const Reference& reference() const { return reference_; }
  const ValueSource& source() const { return source_; }
  Oracle& oracle() { return oracle_; }
  const std::vector<CheckCase>& cases() const { return cases_; }

  // Nanoseconds of one call of the baseline, roughly; measured when the bench was made.
  double baseline_call_ns() const { return baseline_call_ns_; }
  // Calls in one timed interval: the same for every candidate of the task, as the baseline's time depends on
  // it (the more operands, the fewer of them stay in the shared cache); enough for 0.2 ms of the baseline.
  // Bounded by the memory of the operands.
  int calls() const { return calls_; }
  // The baseline with operands for at least `calls` calls.
  BaselineArm& baseline(int calls);
  // Median nanoseconds a call of the baseline with nothing beside it: measured once …
  double alone_ns(int calls);
  // … and again: the host drifts.
  double alone_again_ns(int calls);
  // Bounds for timed calls; every case of the timing shape is made for it.
  std::vector<double> timed_bounds();

 private:
  const task::Task task_;
  const ValueSource& source_;
  Reference reference_;
  Oracle oracle_;
  std::vector<CheckCase> cases_;
  std::uint64_t seed_;
  std::unique_ptr<BaselineArm> baseline_;
  int baseline_calls_ = 0;
  double baseline_call_ns_ = 0;
  int calls_ = 1;
  std::map<int, double> alone_ns_;  // by calls an interval
  std::uint64_t alone_again_ = 0;
};

}  // namespace warpsmith::measure
