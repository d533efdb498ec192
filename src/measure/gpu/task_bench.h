// What the candidates of one task share on a GPU: reference, right answers, the baseline's operands and its
// time alone.
#pragma once

#include <cstdint>
#include <memory>

#include "arms.h"
#include "harness.h"
#include "oracle.h"
#include "warpsmith/measure/measurer.h"
#include "warpsmith/measure/oracle.h"

namespace warpsmith::measure {

class GpuTaskBench {
 public:
  GpuTaskBench(GpuHarness& harness, const task::Task& task, const Settings& settings);
  const task::Task& task() const { return task_; }  // its math is what counts of the workflow's and its own
  const task::Dims& timing_dims() const { return task_.timing.front(); }
  const Reference& reference() const { return reference_; }
  Oracle& oracle() { return oracle_; }
  const std::vector<CheckCase>& cases() const { return cases_; }
  // Nanoseconds of one call of the baseline, roughly.
  double baseline_call_ns() const { return baseline_call_ns_; }
  // Of the baseline in one timed row (timing/calls_a_row.h), and what such a row takes, roughly.
  int calls() const { return calls_; }
  double row_ns() const { return calls_ * baseline_call_ns_; }
  GpuBaselineArm& baseline();
  // GpuBaselineArm::memory_is_whole() of the baseline, if there is one yet.
  bool baseline_is_whole() { return !baseline_ || baseline_->memory_is_whole(); }
  std::unique_ptr<GpuBaselineArm> another_baseline() const;
  // Median nanoseconds a call of the baseline with nothing beside it, in rows as long as beside a candidate:
  // measured once, and again.
  double alone_ns();
  double alone_again_ns();
  // Nanoseconds of a call of the baseline from an idle GPU, median of a few.
  double idle_ns();
  std::vector<double> timed_bounds();

 private:
  GpuHarness& harness_;
  const task::Task task_;
  Reference reference_;
  GpuOracle oracle_;
  std::vector<CheckCase> cases_;
  std::uint64_t seed_;
  double baseline_call_ns_ = 0, alone_ns_ = 0, idle_ns_ = 0;
  int calls_ = 1;
  std::unique_ptr<GpuBaselineArm> baseline_;
  std::uint64_t alone_again_ = 0;
};

}  // namespace warpsmith::measure
