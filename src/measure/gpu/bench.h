// What the candidates of one task share on a GPU.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "arms.h"
#include "engine/bench.h"
#include "harness.h"

namespace warpsmith::measure {

class HostRows;  // extension/host_rows.h

// Kinds of GpuBench::host_rows().
inline constexpr const char *kPythonRows = "python", *kExtensionRows = "extension";

class GpuBench : public Bench {
 public:
  GpuBench(GpuHarness& harness, const task::Task& task, const Settings& settings);
  ~GpuBench() override;
  // What a row of calls() takes, roughly, in nanoseconds (timing/calls_a_row.h).
  double row_ns() const { return calls_ * baseline_call_ns_; }
  GpuBaselineArm& baseline();
  // GpuBaselineArm::memory_is_whole() of the baseline, if there is one yet.
  bool baseline_is_whole() { return !baseline_ || baseline_->memory_is_whole(); }
  std::unique_ptr<GpuBaselineArm> another_baseline() const;
  // Median nanoseconds a call of the baseline with nothing beside it, in rows as long as beside a candidate.
  double alone_ns();
  // Whether the baseline is timed as the host enqueues it (GpuBaselineArm::pace_by_host()): then the host
  // bounds it.
  bool is_paced_by_host() const { return paced_by_host_; }
  // Nanoseconds of a call of the baseline from an idle GPU, median of a few.
  double idle_ns();
  // The baseline as candidates with host code meet it, by the kind of process that they run in. Made when a
  // kind is first asked for.
  bool has_host_rows(const std::string& kind) const { return host_rows_.contains(kind); }
  using MakeHostRows = std::function<std::unique_ptr<HostRows>()>;
  HostRows& host_rows(const std::string& kind, const MakeHostRows& make);

 private:
  std::vector<double> rows_alone(int calls, std::uint64_t key) override;

  GpuHarness& harness_;
  bool paced_by_host_ = false;
  double idle_ns_ = 0;
  std::unique_ptr<GpuBaselineArm> baseline_;
  std::map<std::string, std::unique_ptr<HostRows>> host_rows_;
};

}  // namespace warpsmith::measure
