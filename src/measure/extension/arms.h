// Candidates of tiers `extension` and `python`: their checks and timed calls, in a child; and the baseline by
// the same kind of clock.
//
// Both sides of a pair are timed by this process's clock over K calls, from an idle GPU to device-wide
// synchronisation. What such an interval takes with nothing in it is measured for each (a child without a
// candidate; this process without a call), and taken off. The baseline of tier `python` is the reference in
// a child of its own (ChildBaseline), that of tier `extension` eager in this process (HostClockBaseline).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/arms.h"
#include "gpu/harness.h"
#include "timing/places.h"
#include "warpsmith/device/extension_session.h"
#include "warpsmith/measure/arm.h"
#include "warpsmith/measure/reference.h"

namespace warpsmith::measure {

// Waits for the GPU; in this process nothing of a candidate's runs, so what goes wrong is the machine's.
void settle(const GpuHarness& harness);

// What surrounds a candidate's work, measured in a child without one: of several times the least, for a
// machine that is busy for a moment would have all candidates look faster than they are.
struct ExtensionOverhead {
  double interval_ns = 0;  // of an empty interval by our clock
  double outside_ns = 0;   // of it, what the child's events do not hold
  double look_ns = 0;      // from the end of an interval until this process has looked at outputs
  double again_ns = 0;     // of a second look right behind it
  double arm_ns = 0;       // ExtensionRun::arm_ns
};
ExtensionOverhead measure_overhead(const GpuHarness& harness, device::ExtensionSession& empty);

class ExtensionCandidate : public Program {
 public:
  // `session`: opened, with no candidate loaded so far.
  ExtensionCandidate(GpuHarness& harness, const task::Task& task, device::ExtensionSession session);
  // Loads the shared object: its constructors run.
  Ran load();
  Ran prepare(const task::Dims& dims, int sets) override;
  const task::Dims& dims() const override { return dims_; }
  std::vector<std::span<std::byte>> inputs(int set) override;
  std::vector<std::span<const std::byte>> outputs(int set) override;
  void poison(int sets) override;
  Ran run(int sets) override;
  bool alive() const override { return session_.alive(); }

  GpuHarness& harness() { return harness_; }
  const task::Task& task() const { return task_; }
  device::ExtensionSession& session() { return session_; }
  const device::ExtensionSession& session() const { return session_; }
  // Operands of `sets` calls, shared with the child, which is told of them. Those of before must be gone
  // where they are much memory: the child cannot use them any more.
  std::unique_ptr<GpuOperands> lay_out(const task::Dims& dims, int sets, Ran* outcome);

 private:
  GpuHarness& harness_;
  const task::Task& task_;
  device::ExtensionSession session_;
  task::Dims dims_;
  std::unique_ptr<GpuOperands> operands_;
  std::uint64_t laid_out_bytes_ = 0;  // that the child has mapped last
};

class ExtensionArm : public Arm {
 public:
  // `bounds`: by output, for inspect(), which compares with the reference in its own precision.
  ExtensionArm(ExtensionCandidate& candidate, const Reference& reference, std::vector<double> bounds,
               const task::Dims& dims, int most_calls, const ExtensionOverhead& overhead);
  // Bad where the candidate has no room for its operands.
  const Ran& outcome() const { return outcome_; }
  // HostClockBaseline::values_ns() for rows as they come now: what they take longer is charged. Until then
  // nothing is.
  void expect_values(double ns) { values_alone_ns_ = ns; }
  // What a call costs beside its work, measured in calls that do nothing, in nanoseconds; the child stands
  // still before and behind. Of a child that we trust, since it may do as it likes.
  double idle_call_ns(int calls);
  // This is taken off every call from now on, as far as the host and not the GPU was what a row waited for,
  // and never more than `most_ns`.
  void take_off_call(double ns, double most_ns) {
    call_overhead_ns_ = ns;
    most_taken_off_ns_ = most_ns;
    taken_off_ns_ = rows_taken_off_ = 0;
  }
  // What was taken off a call since then, in the mean over rows; 0: there was no row.
  double taken_off_ns() const { return rows_taken_off_ > 0 ? taken_off_ns_ / rows_taken_off_ : 0; }
  // What a look at the outputs of a row of `calls` takes by itself, in nanoseconds, while the child stands
  // still; run() takes it off from now on. May be asked when the candidate is gone, and nothing but this and
  // clocks() may.
  double look_alone_ns(int calls);
  // As HostBaseline::values_ns(), while the child stands still.
  double values_ns(int calls, std::uint64_t key);
  void begin(std::uint64_t key) override { deck_.begin(key); }
  void renew(std::uint64_t key, int calls) override;
  Run run(int calls) override;
  std::optional<int> unwritten(int) override { return std::nullopt; }  // run() has looked
  Run inspect(int call) override;
  // Rows of their own, one by one: the child stands still from somewhere about there on, without a word or
  // with one. Its results must be those of the calls that it had begun.
  Run stop_short(std::uint64_t key, int calls, int made) override;
  int place() const override { return place_; }
  // The kernels of one more call, as the child tells them (ExtensionSession::trace). It is the last one.
  device::ExtensionRun trace(std::vector<device::ExtensionKernel>* kernels) {
    return candidate_.session().trace(first_, kernels);
  }

  // Of the runs so far, medians, all calls together: by our clock and by the child's events, each without
  // what surrounds it; how much longer than after an empty interval it took until outputs could be looked at,
  // and than a child without a candidate takes until it is ready for the clock; and before that, while the
  // child stands still, the row's values and the flush of L2, by the GPU's clock.
  struct Clocks {
    double ours_ns = 0, events_ns = 0, late_ns = 0, armed_ns = 0, values_ns = 0;
  };
  Clocks clocks() const;
  // Drops what clocks() tells of.
  void forget_clocks();
  // What its time went to since it was made, in seconds: "values 0.20, rows 0.31, looks 0.02, …".
  std::string spent() const;

 private:
  // Of what looks unwritten right behind a row. Results that come later are no answers.
  Run look_at_unwritten(int call, int calls);
  // Looks at outputs of these calls for `written` or unwritten ones, and at all canaries. Waits. Not ok:
  // something was written to that is no operand's.
  Run look_at_outputs(int first_call, int calls, bool written = false);
  device::ExtensionRun row(int calls, const device::ExtensionSession::Pause* pause = nullptr,
                           int idle_times = 0);
  // Waits until what the child has enqueued must be done, and looks (stopped_row.h). `begun`: calls that it
  // has begun, at least 1; nothing of what lies behind these, nor between operands, has been written to, or
  // else it is bad.
  Run look_behind_stop(int calls, int* begun);
  Run look_at_others(int begun, int calls);
  enum class Stop { kSignal, kWord };
  Run stop_rows(std::uint64_t key, int calls, int made);
  Run stop_row(Stop kind, std::uint64_t key, int calls, int made);
  // New values and poison for these calls of the row: enqueues the poison, and prepares the values.
  void renew_operands(int first_call, int calls);
  // The untimed call comes behind those of the row, or, where there is one set, takes that.
  int set_of(int call) const { return operands_->sets() > 1 ? first_ + call : first_; }

  ExtensionCandidate& candidate_;
  GpuHarness& harness_;
  const task::Task& task_;
  GpuInputs inputs_;
  int places_, most_calls_;
  int place_ = 0, first_ = 0;
  PlaceDeck deck_;
  ExtensionOverhead overhead_;
  Ran outcome_;
  std::unique_ptr<GpuOperands> operands_;
  std::function<std::unique_ptr<GpuCallCheck>()> make_check_;
  std::unique_ptr<GpuCallCheck> check_;  // made when it is wanted: it takes as much memory as a call
  GpuOutputs outputs_;
  std::uint64_t key_ = 0;
  double call_ns_ = 0;  // in the last run
  double call_overhead_ns_ = 0, most_taken_off_ns_ = 0, taken_off_ns_ = 0, rows_taken_off_ = 0;
  double stop_share_[2] = {1, 1};  // by kind: of their time after which calls are surely not all begun
  double last_values_ns_ = 0;
  double values_alone_ns_ = 0;  // 0: not known, and nothing is charged
  std::vector<double> ours_, events_, late_, armed_, values_;
  // In seconds: renew(); row(), and of it values and caches before the clock; looks behind rows; comparisons
  // in full; rows that are stopped, which are not in the others.
  struct Spent {
    double renew = 0, rows = 0, before_clock = 0, looks = 0, compared = 0, stopped = 0;
  } spent_;
  double look_alone_ns_ = 0;  // of rows of …
  int look_calls_ = 0;        // … so many calls; 0: not taken yet
};

// A baseline by the host's clock.
class HostBaseline : public Arm {
 public:
  // What the values of `calls` calls and the flush of L2 take with no candidate's row around them, in
  // nanoseconds by the GPU's clock: the median of some. To compare with ExtensionArm::Clocks::values_ns.
  virtual double values_ns(int calls, std::uint64_t key) = 0;
  // What a call costs beside its work in rows of so many; it is taken off this side's rows from now on. 0:
  // nothing that is known.
  virtual double take_off_call(int) { return 0; }
  // ExtensionArm::taken_off_ns()
  virtual double taken_off_ns() const { return 0; }
  // What a launch costs in its context; 0: it is not known.
  virtual double launch_ns() const { return 0; }
};

// Eager in this process: what candidates of tier `extension` are timed against.
class HostClockBaseline : public HostBaseline {
 public:
  // `reference` runs on the GPU. All that is referred to must outlive it.
  HostClockBaseline(GpuHarness& harness, const task::Task& task, const Reference& reference,
                    const task::Dims& dims, int most_calls);
  void renew(std::uint64_t key, int calls) override;
  Run run(int calls) override;
  std::optional<int> unwritten(int) override { return std::nullopt; }
  Run inspect(int) override { return {}; }
  int place() const override { return place_; }
  void begin(std::uint64_t key) override { deck_.begin(key); }
  double values_ns(int calls, std::uint64_t key) override;

 private:
  std::int64_t interval(int calls);

  GpuHarness& harness_;
  const task::Task& task_;
  task::Dims dims_;
  GpuInputs inputs_;
  int places_, most_calls_;
  int place_ = 0, first_ = 0;
  PlaceDeck deck_;
  GpuOperands operands_;
  std::optional<Reference::Calls> calls_;
  device::GpuMemory own_;
  double empty_ns_ = 0;
};

// The reference in a child of the kind that candidates run in, called in the same way: what candidates of
// tier `python` are timed against. Whatever such a call costs is on both sides of their scores.
class ChildBaseline : public HostBaseline {
 public:
  // `child` has loaded the reference. Throws Error where there is no room for its operands.
  ChildBaseline(std::shared_ptr<ExtensionCandidate> child, const Reference& reference,
                std::vector<double> bounds, const task::Dims& dims, int most_calls,
                const ExtensionOverhead& overhead);
  void begin(std::uint64_t key) override { arm_.begin(key); }
  void renew(std::uint64_t key, int calls) override { arm_.renew(key, calls); }
  // Throws Error where the child fails: that is not the candidate's doing.
  Run run(int calls) override;
  int place() const override { return arm_.place(); }
  std::optional<int> unwritten(int) override { return std::nullopt; }
  Run inspect(int) override { return {}; }
  double values_ns(int calls, std::uint64_t key) override { return arm_.values_ns(calls, key); }
  double take_off_call(int calls) override;
  double taken_off_ns() const override { return arm_.taken_off_ns(); }
  double launch_ns() const override { return child_->session().launch_ns(); }

 private:
  std::shared_ptr<ExtensionCandidate> child_;
  ExtensionArm arm_;
};

}  // namespace warpsmith::measure
